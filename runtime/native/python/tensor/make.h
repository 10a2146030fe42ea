/* Tensors: new ones, copies, and imports by DLPack. */
#pragma once

#include "python/tensor/tensor.h"

/* _core.empty(shape, dtype_code, device) and _core.from_dlpack(source) */
PyObject *core_empty(PyObject *module, PyObject *args);
PyObject *core_from_dlpack(PyObject *module, PyObject *source);

/* TensorBase._copy_from(other) */
PyObject *tensor_copy_from(Tensor *self, PyObject *other);

/* Copy to a device; returns a Tensor, or NULL with an exception set. */
PyObject *tensor_copy_to(Tensor *self, DLDevice device);
