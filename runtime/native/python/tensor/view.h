/* A Tensor over another Tensor's memory, in another shape, on any device. */
#ifndef DSO_PACKER_PYTHON_TENSOR_VIEW_H
#define DSO_PACKER_PYTHON_TENSOR_VIEW_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* tensor_view(tensor, shape, dtype_code): returns a Tensor that keeps the memory of `tensor`, which
 * must be compact and large enough. */
PyObject *tensor_view(PyObject *module, PyObject *args);

#endif
