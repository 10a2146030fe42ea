/* TensorBase: a dense array over borrowed or owned memory, laid out as a DLTensor. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/dtype.h"
#include "abi/proof.h"

extern PyTypeObject TensorBase_Type;

/* The memory belongs to a Python buffer (source), to a TVM FFI object (object), or it is borrowed
 * for a call (neither is set). Only the first may be incomplete or unaligned. */
typedef struct {
  PyObject_HEAD
  Py_buffer source;
  dso_object *object; /* owned, or NULL */
  PyObject *library;  /* owned: contains the object's deleter; or NULL */
  DLTensor tensor;    /* strides are never NULL; byte_offset is 0 in CPU memory */
  PyObject *shape;
  Py_ssize_t nbytes;        /* by shape and dtype */
  Py_ssize_t *byte_strides; /* in the same block as the tensor's shape and strides, after them */
  void *copy;               /* owned: an aligned copy of the source, made when needed; or NULL */
  Py_ssize_t exports;       /* the number of exported buffers and DLPack tensors */
  int is_readonly, is_compact;
  enum { STATE_COMPLETE, STATE_UNPROVED, STATE_INCOMPLETE, STATE_EXPIRED } state;
  struct proof *proof; /* of the source, which must be verified before it is used; or NULL */
  PyObject *weakrefs;
} Tensor;

static inline int tensor_check(PyObject *object) {
  return PyObject_TypeCheck(object, &TensorBase_Type);
}

static inline size_t tensor_itemsize(const Tensor *self) {
  return dtype_itemsize(self->tensor.dtype);
}

/* Return the object's DLTensor, aligned and complete; NULL with ValueError or MemoryError. */
DLTensor *tensor_use(PyObject *object);

/* Verify the bytes of a tensor, if they were not (python/proof.h). Returns 0, or -1 with an exception. */
int tensor_prove(PyObject *object);

/* Make a runtime.Tensor over a Tensor object, which it retains. `library` (or NULL) is kept until
 * the object has been released. */
PyObject *tensor_from_object(dso_object *object, PyObject *library);

/* Make a runtime.Tensor that borrows a tensor until tensor_end_borrow; after that it cannot be
 * used. tensor_end_borrow returns -1 without an exception if views of the tensor still exist. */
PyObject *tensor_borrow(const DLTensor *tensor, int is_readonly);
int tensor_end_borrow(PyObject *object);

/* ---- The layout (layout.c); 0, or -1 with an exception set */

/* Fill the data type. */
int tensor_parse_dtype(Tensor *self, int code, int bits, int lanes);

/* Fill shape and strides from the tuple self->shape, compact. */
int tensor_lay_out(Tensor *self);

/* Fill everything from a tensor, including its strides. */
int tensor_copy_layout(Tensor *self, const DLTensor *tensor);

/* ---- Views (buffer.c, dlpack.c) */

extern PyBufferProcs tensor_buffer;
extern PyMethodDef tensor_methods[];
