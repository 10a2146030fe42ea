/* A tensor of another one's memory, in another shape: also where that is no memory of the CPU. */
#ifndef DSO_PACKER_PYTHON_TENSOR_VIEW_H
#define DSO_PACKER_PYTHON_TENSOR_VIEW_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* tensor_view(tensor, shape, dtype_code): a Tensor that keeps the other one's memory, which is
 * compact and no smaller. */
PyObject *tensor_view(PyObject *module, PyObject *args);

#endif
