/* The import search of a library's code: its modules, and its cache of functions. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dso_abi.h"

struct context;

/* Look up a function and cache it. Returns a borrowed dso_object, or NULL with the error raised.
 * Called by any thread; takes the GIL. */
void *imports_find(struct context *context, const char *name);

/* Find a named tensor. Returns 0 with *tensor borrowed from the context's modules, or -1 with the
 * error raised. Called by any thread; takes the GIL. */
int imports_find_weight(struct context *context, const char *name, DLTensor *tensor);

/* Free the context's list of modules, after its library was unmapped. Called by any thread. */
void imports_forget(struct context *context);

/* ---- These need the GIL */

/* Add a weak reference to a module whose imports are searched; 0, or -1 with an exception set. */
int imports_bind(struct context *context, PyObject *module);

/* Empty the import cache. The library's code may still call the Function objects that it kept: they
 * then look the function up again. */
void imports_retire(struct context *context);

/* For the garbage collector: visit the callables whose only reference is the context's. */
int imports_traverse(const struct context *context, visitproc visit, void *arg);
