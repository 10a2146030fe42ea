/* TensorBase: the buffer protocol (PEP 3118). */
#include "python/tensor/tensor.h"

#include "abi/dlpack.h"

static int refuse(const char *message) {
  PyErr_SetString(PyExc_BufferError, message);
  return -1;
}

/* A C-contiguous array is also Fortran contiguous if at most one extent differs from 1. */
static int is_fortran(const Tensor *self) {
  int64_t compact = 1;
  if (self->nbytes == 0) return 1;
  for (int i = 0; i < self->tensor.ndim; i++) {
    if (self->tensor.shape[i] != 1 && self->tensor.strides[i] != compact) return 0;
    compact *= self->tensor.shape[i];
  }
  return 1;
}

static int has(int flags, int request) { return (flags & request) == request; }

/* Return why the tensor cannot satisfy a request, or NULL if it can. */
static const char *find_obstacle(const Tensor *self, int flags) {
  int device = self->tensor.device.device_type;
  if (device != DLPACK_CPU && device != DLPACK_CUDA_HOST)
    return "the tensor is in a device's memory; copy it to the CPU";
  if (dtype_format(self->tensor.dtype) == NULL) return "this dtype has no buffer format; use .raw";
  if (has(flags, PyBUF_WRITABLE) && self->is_readonly) return "the tensor is read-only";
  if (has(flags, PyBUF_F_CONTIGUOUS) && !is_fortran(self))
    return "the tensor is not Fortran contiguous";
  if (self->is_compact) return NULL;
  if (has(flags, PyBUF_C_CONTIGUOUS)) return "the tensor is not C contiguous";
  if (has(flags, PyBUF_ANY_CONTIGUOUS) && !is_fortran(self)) return "the tensor is not contiguous";
  return has(flags, PyBUF_STRIDES) ? NULL : "the tensor has strides";
}

static int get_buffer(Tensor *self, Py_buffer *view, int flags) {
  const char *wrong = find_obstacle(self, flags);
  view->obj = NULL;
  if (wrong != NULL) return refuse(wrong);
  if (tensor_use((PyObject *)self) == NULL) return -1;
  view->buf = self->tensor.data;
  view->len = self->nbytes;
  view->readonly = self->is_readonly;
  view->itemsize = (Py_ssize_t)tensor_itemsize(self);
  view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)dtype_format(self->tensor.dtype) : NULL;
  view->ndim = flags & PyBUF_ND ? self->tensor.ndim : 1;
  view->shape = flags & PyBUF_ND ? (Py_ssize_t *)self->tensor.shape : NULL;
  view->strides = has(flags, PyBUF_STRIDES) ? self->byte_strides : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  view->obj = Py_NewRef((PyObject *)self);
  self->exports++;
  return 0;
}

static void release_buffer(Tensor *self, Py_buffer *Py_UNUSED(view)) { self->exports--; }

PyBufferProcs tensor_buffer = {.bf_getbuffer = (getbufferproc)get_buffer,
                               .bf_releasebuffer = (releasebufferproc)release_buffer};
