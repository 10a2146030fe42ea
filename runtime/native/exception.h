/* The exceptions that leave the core. */
#ifndef DSO_PACKER_NATIVE_EXCEPTION_H
#define DSO_PACKER_NATIVE_EXCEPTION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "load_error.h"
#include "target.h"

/* The exception that is set, taken, or NULL; and setting it again, which takes the reference.
 * (PyErr_Fetch and PyErr_Restore went out with 3.12.) */
PyObject *exception_take(void);
void exception_set(PyObject *exception);

/* Raise runtime.error.LibraryLoadError "<path>: <text>" and return NULL. */
PyObject *raise_load_error(PyObject *path, const char *reason, const char *format, ...);

/* The same for a symbol: "<path>: <prefix><name> at <address>: <wrong>". */
PyObject *raise_symbol_error(PyObject *path, const char *reason, const char *prefix,
                             PyObject *name, uint64_t address, const char *wrong);

/* Raise `exception` "<function>: argument <index> (<name>): <text>; declared <signature>",
 * caused by the exception that is set, if one is. Returns -1. */
int raise_argument_error(const struct target *target, Py_ssize_t index, PyObject *exception,
                         const char *format, ...);

/* Raise what a call that returned `status` left behind, and return NULL. `count` is
 * raised_count() from before the call. */
PyObject *raise_call_error(const struct target *target, int status, uint64_t count);

/* The path as messages show it: itself, or its repr if it is empty or unprintable. */
PyObject *shown_path(PyObject *path);

#endif
