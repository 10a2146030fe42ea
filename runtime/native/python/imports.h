/* The modules that a library's code may import functions from. */
#ifndef DSO_PACKER_PYTHON_IMPORTS_H
#define DSO_PACKER_PYTHON_IMPORTS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

struct context;

/* Look a function up and remember it; borrowed (a dso_object), or NULL with the error raised. Any
 * thread; takes the GIL. */
void *imports_find(struct context *context, const char *name);

/* The context's code is gone: forget whom to ask. Any thread. */
void imports_forget(struct context *context);

/* ---- With the GIL held */

/* Ask this module, too, for as long as it is alive; 0, or -1 with an exception set. */
int imports_bind(struct context *context, PyObject *module);

/* Drop the functions that the context's code found; the code may still call what it remembers. */
void imports_retire(struct context *context);

/* For the garbage collector: visit the callables that nobody but the context keeps. */
int imports_traverse(const struct context *context, visitproc visit, void *arg);

#endif
