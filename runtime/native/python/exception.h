/* The exceptions that leave the core. */
#ifndef DSO_PACKER_PYTHON_EXCEPTION_H
#define DSO_PACKER_PYTHON_EXCEPTION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "library/load_error.h"
#include "python/call/callee.h"

struct call_frame;

/* The exception that is set, taken, or NULL; and setting it again, which takes the reference.
 * (PyErr_Fetch and PyErr_Restore went out with 3.12.) */
PyObject *exception_take(void);
void exception_set(PyObject *exception);

/* Raise runtime.error.OutOfMemoryError, or MemoryError if there is none for that, and return NULL. */
void *raise_no_memory(void);

/* Raise runtime.error.LibraryLoadError "<path>: <text>" and return NULL. */
PyObject *raise_load_error(PyObject *path, const char *reason, const char *format, ...);

/* The same for a symbol: "<path>: <prefix><name> at <address>: <wrong>". */
PyObject *raise_symbol_error(PyObject *path, const char *reason, const char *prefix, PyObject *name,
                             uint64_t address, const char *wrong);

/* Raise `exception` "<function>: argument <number> '<name>': <text>; declared as <signature>",
 * caused by the exception that is set, if one is. Numbers count from 1, as in the messages of the
 * wrappers that packer makes. Returns -1. */
int raise_argument_error(const struct call_frame *frame, Py_ssize_t index, PyObject *exception,
                         const char *format, ...);

/* Raise what a call that returned `status` left behind, and return NULL. `count` is
 * raised_count() from before the call. */
PyObject *raise_call_error(const struct callee *callee, int status, uint64_t count);

/* Raise what our own C code left behind when it returned -1, likewise; `where` is for one that says
 * nothing. */
PyObject *raise_native_error(const char *where, uint64_t count);

/* Leave the exception that is set to the call of ours that ends because of it, in this thread: as
 * an error for the C code between, and as itself. */
void exception_leave(void);

/* Forget one that was left, and that no call ended of. */
void exception_forget(void);

/* The `__name__` of a callable, or its type's; NULL with an exception set. */
PyObject *callable_name(PyObject *callable);

/* The path as messages show it: itself, or its repr if it is empty or unprintable. */
PyObject *shown_path(PyObject *path);

#endif
