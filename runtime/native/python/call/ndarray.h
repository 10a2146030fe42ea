/* NumPy's arrays, read by their struct. */
#ifndef DSO_PACKER_PYTHON_CALL_NDARRAY_H
#define DSO_PACKER_PYTHON_CALL_NDARRAY_H

#include "python/call/convert.h"

/* numpy.ndarray, or NULL: NumPy is not imported yet, or its struct is not the one we know. */
extern PyTypeObject *ndarray_type;

/* Whether `type` is numpy.ndarray and its struct is the one we know; ndarray_type is set then. It
 * is found out once, at the first array. */
int ndarray_recognise(PyTypeObject *type);

/* Pass an object of exactly ndarray_type; 0, or -1 with an exception set. */
int argument_ndarray(struct call_frame *frame, Py_ssize_t index, PyObject *object);

#endif
