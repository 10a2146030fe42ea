/* Containers that a loop fills with new objects; an exception clears them, which ends the loop. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Append a new object, or clear the list if it is NULL or cannot be appended. */
static inline void list_add(PyObject **list, PyObject *object) {
  if (object == NULL || PyList_Append(*list, object) != 0) Py_CLEAR(*list);
  Py_XDECREF(object);
}

/* Store a new object in a list of known length, or clear the list if it is NULL. */
static inline void list_fill(PyObject **list, size_t index, PyObject *object) {
  if (object != NULL) PyList_SET_ITEM(*list, (Py_ssize_t)index, object);
  else Py_CLEAR(*list);
}

/* The same of a tuple. */
static inline void tuple_fill(PyObject **tuple, size_t index, PyObject *object) {
  if (object != NULL) PyTuple_SET_ITEM(*tuple, (Py_ssize_t)index, object);
  else Py_CLEAR(*tuple);
}
