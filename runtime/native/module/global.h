/* The global functions of a program without Python: registered by name. */
#ifndef DSO_PACKER_MODULE_GLOBAL_H
#define DSO_PACKER_MODULE_GLOBAL_H

#include "module/module.h"
#include "module/names.h"

/* Find a function. Returns 1 with an owned function, or 0. */
int global_find(const char *name, dso_function **function);

/* Register a function and retain it. Returns 0, or -1 with ValueError if the name is taken. */
int global_register(const char *name, dso_function *function);

/* Append the names. Returns 0, or -1 with OutOfMemoryError raised. */
int global_names(struct names *names);

#endif
