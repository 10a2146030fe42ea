/* NumPy arrays as arguments, read from their struct. */
#ifndef DSO_PACKER_PYTHON_CALL_NDARRAY_H
#define DSO_PACKER_PYTHON_CALL_NDARRAY_H

#include "python/call/convert.h"

/* numpy.ndarray; NULL if NumPy is not imported yet or if its struct is unknown. */
extern PyTypeObject *ndarray_type;

/* Return true if `type` is numpy.ndarray and its struct is known; then sets ndarray_type. The
 * struct is tested only once, at the first array. */
int ndarray_recognise(PyTypeObject *type);

/* Convert an object of exactly ndarray_type; 0, or -1 with an exception set. */
int argument_ndarray(struct call_frame *frame, Py_ssize_t index, PyObject *object);

#endif
