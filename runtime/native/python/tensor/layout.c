/* TensorBase: shape, strides and size, with a check of every product. */
#include "python/exception.h"
#include "python/tensor/tensor.h"

#include "abi/dlpack.h"
#include "abi/strides.h"
#include "device/tensor_object.h"

int tensor_parse_dtype(Tensor *self, int code, int bits, int lanes) {
  if (code < 0 || code > 255 || bits < 1 || bits > 255 || lanes < 1 || lanes > 65535)
    return raise_format(PyExc_ValueError,
                        "dtype_code, expected (0..255, 1..255, 1..65535), found (%d, %d, %d)", code,
                        bits, lanes);
  self->tensor.dtype =
      (DLDataType){.code = (uint8_t)code, .bits = (uint8_t)bits, .lanes = (uint16_t)lanes};
  return 0;
}

/* One block for shape, strides in elements and strides in bytes. */
static int make_dims(Tensor *self, Py_ssize_t ndim) {
  if (ndim < 0 || ndim > TENSOR_MAX_DIMS)
    return raise_format(PyExc_ValueError, "shape, expected at most %d dimensions, found %zd",
                        TENSOR_MAX_DIMS, ndim);
  self->tensor.ndim = (int32_t)ndim;
  self->tensor.shape = PyMem_New(int64_t, 3 * (size_t)ndim + 1);
  if (self->tensor.shape == NULL) return as_status(raise_no_memory());
  self->tensor.strides = self->tensor.shape + ndim;
  self->byte_strides = (Py_ssize_t *)(self->tensor.strides + ndim);
  return 0;
}

static int parse_shape(Tensor *self) {
  if (make_dims(self, PyTuple_GET_SIZE(self->shape)) != 0) return -1;
  for (int i = 0; i < self->tensor.ndim; i++) {
    Py_ssize_t extent = PyNumber_AsSsize_t(PyTuple_GET_ITEM(self->shape, i), PyExc_ValueError);
    if (extent == -1 && PyErr_Occurred()) return -1;
    self->tensor.shape[i] = extent;
  }
  return 0;
}

static int refuse_shape(const Tensor *self) {
  for (int i = 0; i < self->tensor.ndim; i++)
    if (self->tensor.shape[i] < 0)
      return raise_format(PyExc_ValueError, "shape %R, expected no negative extent", self->shape);
  return raise_format(PyExc_ValueError, "shape %R of %zu-byte elements is beyond the address space",
                      self->shape, tensor_itemsize(self));
}

/* Compute compact strides and the size. Strides in bytes are meaningless for elements below a
 * byte. */
static int measure(Tensor *self) {
  size_t nbytes, itemsize = tensor_itemsize(self);
  if (dtype_nbytes(self->tensor.dtype, self->tensor.ndim, self->tensor.shape, &nbytes) != 0)
    return refuse_shape(self);
  self->nbytes = (Py_ssize_t)nbytes;
  strides_set(&self->tensor);
  for (int i = 0; i < self->tensor.ndim; i++)
    self->byte_strides[i] = (Py_ssize_t)((size_t)self->tensor.strides[i] * itemsize);
  return 0;
}

int tensor_lay_out(Tensor *self) {
  self->is_compact = 1;
  return parse_shape(self) != 0 ? -1 : measure(self);
}

static int make_shape_tuple(Tensor *self) {
  self->shape = PyTuple_New(self->tensor.ndim);
  for (int i = 0; self->shape != NULL && i < self->tensor.ndim; i++) {
    PyObject *extent = PyLong_FromLongLong(self->tensor.shape[i]);
    if (extent == NULL) return -1;
    PyTuple_SET_ITEM(self->shape, i, extent);
  }
  return self->shape != NULL ? 0 : -1;
}

/* Replace the compact strides by the given ones. A stride of an extent of 1 does not matter for
 * is_compact. */
static int copy_strides(Tensor *self, const int64_t *strides) {
  Py_ssize_t itemsize = (Py_ssize_t)tensor_itemsize(self);
  for (int i = 0; i < self->tensor.ndim; i++) {
    if (strides[i] == self->tensor.strides[i]) continue;
    self->is_compact &= self->tensor.shape[i] == 1 || self->nbytes == 0;
    self->tensor.strides[i] = strides[i];
    if (!__builtin_mul_overflow(strides[i], itemsize, &self->byte_strides[i])) continue;
    return raise_format(PyExc_ValueError, "a stride of %lld elements is beyond the address space",
                        (long long)strides[i]);
  }
  return 0;
}

/* On a device `data` may be a handle, to which no offset can be added. */
static void set_data(Tensor *self, const DLTensor *tensor) {
  int type = tensor->device.device_type;
  self->tensor.data = tensor->data;
  if (type == DLPACK_CPU || type == DLPACK_CUDA_HOST)
    self->tensor.data = (void *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset);
  else self->tensor.byte_offset = tensor->byte_offset;
}

int tensor_copy_layout(Tensor *self, const DLTensor *tensor) {
  self->tensor.device = tensor->device;
  self->tensor.dtype = tensor->dtype;
  set_data(self, tensor);
  if (make_dims(self, tensor->ndim) != 0) return -1;
  for (int i = 0; i < tensor->ndim; i++) self->tensor.shape[i] = tensor->shape[i];
  self->is_compact = 1;
  if (make_shape_tuple(self) != 0 || measure(self) != 0) return -1;
  return tensor->strides != NULL ? copy_strides(self, tensor->strides) : 0;
}
