/* A memoryview of memory that another Python object owns. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject Span_Type;

/* The owner of a Span, borrowed. */
PyObject *span_owner(PyObject *span);

/* Return a memoryview of `nbytes` bytes that holds a reference to `owner`; NULL with an exception
 * set. */
PyObject *span_view(PyObject *owner, const void *bytes, Py_ssize_t nbytes, int readonly);
