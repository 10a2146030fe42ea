/* TensorBase: a dense CPU array over borrowed or own bytes, laid out as a DLTensor. */
#ifndef DSO_PACKER_NATIVE_TENSOR_H
#define DSO_PACKER_NATIVE_TENSOR_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../include/dso_packer.h"

extern PyTypeObject TensorBase_Type;

static inline int tensor_check(PyObject *object) {
  return PyObject_TypeCheck(object, &TensorBase_Type);
}

/* The DLTensor, aligned and complete, owned by the object; NULL with ValueError or MemoryError. */
DLTensor *tensor_use(PyObject *object);
int tensor_is_readonly(PyObject *object);

#endif
