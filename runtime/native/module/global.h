/* Global functions by name: built-in functions, which every program has, and functions that a
 * program without Python registered. */
#pragma once

#include "module/module.h"
#include "module/names.h"

/* The functions that every program has, ended by a row without a name. The table is in a higher
 * folder (functions/table.c). */
struct built_in_function {
  const char *name;
  dso_function_object *function;
};
extern const struct built_in_function built_in_functions[];

/* The function of the table with this name, or NULL. */
dso_function_object *built_in_find(const char *name);

/* Find a function. Returns 1 with an owned function, or 0. */
int global_find(const char *name, dso_function **function);

/* Register a function and retain it; it replaces one that every program has. Returns 0, or -1 with
 * ValueError if a function of this name is registered. */
int global_register(const char *name, dso_function *function);

/* Append the names of the functions that the program registered, or of the built-in functions.
 * Returns 0, or -1 with OutOfMemoryError raised. */
int global_names(struct names *names);
int built_in_add_names(struct names *names);
