/* TensorBase: a dense array over borrowed or own memory, laid out as a DLTensor. */
#ifndef DSO_PACKER_PYTHON_TENSOR_TENSOR_H
#define DSO_PACKER_PYTHON_TENSOR_TENSOR_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/dtype.h"

extern PyTypeObject TensorBase_Type;

/* The memory is that of one of: a Python buffer (source), an object of TVM FFI (object), or
 * someone who lends it for a call (neither). Only the first may be incomplete or unaligned. */
typedef struct {
  PyObject_HEAD
  Py_buffer source;
  dso_object *object; /* a reference, or NULL */
  PyObject *library;  /* keeps the code of the object's deleter, or NULL */
  DLTensor tensor;    /* strides are always there; byte_offset is 0 in memory of the CPU */
  PyObject *shape;
  Py_ssize_t nbytes;        /* what shape and dtype ask for */
  Py_ssize_t *byte_strides; /* behind the tensor's shape and strides, in one block with them */
  void *copy;               /* the aligned bytes of a source, once they were needed */
  Py_ssize_t exports;       /* views that others hold: buffers and DLPack tensors */
  int is_readonly, is_compact;
  enum { TENSOR_COMPLETE, TENSOR_INCOMPLETE, TENSOR_ENDED } state;
  PyObject *weakrefs;
} Tensor;

static inline int tensor_check(PyObject *object) {
  return PyObject_TypeCheck(object, &TensorBase_Type);
}

static inline size_t tensor_itemsize(const Tensor *self) {
  return dtype_itemsize(self->tensor.dtype);
}

/* The DLTensor, aligned and complete, owned by the object; NULL with ValueError or MemoryError. */
DLTensor *tensor_use(PyObject *object);

/* A runtime.Tensor over a Tensor object, which it retains; `library` (or NULL) is kept until after
 * the object was released. */
PyObject *tensor_from_object(dso_object *object, PyObject *library);

/* A runtime.Tensor over someone's tensor, until tensor_end_loan: it cannot be used from then on.
 * That returns -1 without an exception when others still have views of it. */
PyObject *tensor_lend(const DLTensor *tensor, int is_readonly);
int tensor_end_loan(PyObject *object);

/* ---- The layout (tensor_layout.c); 0, or -1 with an exception set */

/* Fill the data type. */
int tensor_parse_dtype(Tensor *self, int code, int bits, int lanes);

/* Fill shape and strides from the tuple self->shape, compact. */
int tensor_lay_out(Tensor *self);
/* Fill everything from a tensor, strides as they are. */
int tensor_copy_layout(Tensor *self, const DLTensor *tensor);

/* ---- Views (tensor_buffer.c, tensor_dlpack.c) */

extern PyBufferProcs tensor_buffer;
extern PyMethodDef tensor_methods[];

#endif
