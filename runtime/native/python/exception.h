/* Exceptions of the core: raising them, and carrying them through C code. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "library/load_error.h"
#include "python/call/callee.h"

struct call_frame;

/* Clear the exception that is set and return an owned reference to it, or NULL. exception_set sets
 * one and takes over the reference. (PyErr_Fetch and PyErr_Restore are deprecated from 3.12 on.) */
PyObject *exception_take(void);
void exception_set(PyObject *value);

/* Raise runtime.error.OutOfMemoryError and return NULL. Raises MemoryError if it cannot be made. */
void *raise_no_memory(void);

/* PyErr_Format for functions that return a status. Always returns -1. */
int raise_format(PyObject *class, const char *format, ...);

/* -1 after a function that raises and returns NULL: `return as_status(raise_no_memory());`. */
static inline int as_status(const void *raised) {
  (void)raised;
  return -1;
}

/* Make an exception of runtime.error: class(text, **facts). Takes over both references; NULL with an
 * exception set, also if one of them is NULL. */
PyObject *error_new(const char *class_name, PyObject *text, PyObject *facts);

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

/* Raise the error of a call that returned `status`, and return NULL. `count` is raised_count() from
 * before the call. */
PyObject *raise_call_error(const struct callee *callee, int status, uint64_t count);

/* Raise the error of a function of the core that returned -1, likewise. `where` names it in the
 * message if it raised nothing. */
PyObject *raise_native_error(const char *where, uint64_t count);

/* Store the exception that is set, for the Function call in this thread that will end because of
 * it. Also writes its kind and message to the error slot, for the C code between. */
void exception_store(void);

/* Drop the stored exception, if there is one: no call ended because of it. */
void exception_discard(void);

/* Return the `__name__` of a callable, or of its type; NULL with an exception set. */
PyObject *callable_name(PyObject *callable);

/* Return the path as messages show it: its repr if it is empty or unprintable. */
PyObject *shown_path(PyObject *path);
