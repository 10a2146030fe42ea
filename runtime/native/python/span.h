/* A stretch of memory that keeps its owner alive, seen as a memoryview. */
#ifndef DSO_PACKER_PYTHON_SPAN_H
#define DSO_PACKER_PYTHON_SPAN_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject Span_Type;

/* A memoryview of `nbytes` bytes that holds a reference to `owner`. */
PyObject *span_view(PyObject *owner, const void *bytes, Py_ssize_t nbytes, int readonly);

#endif
