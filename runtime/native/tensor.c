#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "dtype.h"
#include "span.h"

enum { COPY_ALIGNMENT = 64 };

typedef struct {
  PyObject_HEAD
  Py_buffer source;
  DLTensor tensor;
  PyObject *shape;
  Py_ssize_t nbytes;        /* what shape and dtype ask for */
  Py_ssize_t *byte_strides; /* behind the tensor's shape and strides, in one block with them */
  void *copy;               /* the aligned bytes, once they were needed */
  int incomplete;
  PyObject *weakrefs;
} Tensor;

static size_t itemsize_of(const Tensor *self) { return dtype_itemsize(self->tensor.dtype); }

/* The largest power of two that divides the element, up to 16: what vector code asks for. */
static size_t alignment_of(const Tensor *self) {
  size_t itemsize = itemsize_of(self), power = itemsize & (0 - itemsize);
  return power < 16 ? power : 16;
}

static int is_aligned(const Tensor *self) {
  return self->nbytes == 0 || (uintptr_t)self->tensor.data % alignment_of(self) == 0;
}

static int parse_dtype(Tensor *self, int code, int bits, int lanes) {
  if (code < 0 || code > 255 || bits < 1 || bits > 255 || lanes < 1 || lanes > 65535) {
    PyErr_Format(PyExc_ValueError,
                 "dtype_code, expected (0..255, 1..255, 1..65535), found (%d, %d, %d)", code, bits,
                 lanes);
    return -1;
  }
  self->tensor.dtype =
      (DLDataType){.code = (uint8_t)code, .bits = (uint8_t)bits, .lanes = (uint16_t)lanes};
  return 0;
}

/* One block for shape, strides in elements and strides in bytes. */
static int make_dims(Tensor *self) {
  Py_ssize_t ndim = PyTuple_GET_SIZE(self->shape);
  if (ndim > MAX_DIMS) {
    PyErr_Format(PyExc_ValueError, "shape, expected at most %d dimensions, found %zd", MAX_DIMS,
                 ndim);
    return -1;
  }
  self->tensor.ndim = (int32_t)ndim;
  self->tensor.shape = PyMem_New(int64_t, 3 * (size_t)ndim + 1);
  if (self->tensor.shape == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  self->tensor.strides = self->tensor.shape + ndim;
  self->byte_strides = (Py_ssize_t *)(self->tensor.strides + ndim);
  return 0;
}

static int parse_shape(Tensor *self) {
  if (make_dims(self) != 0) return -1;
  for (int i = 0; i < self->tensor.ndim; i++) {
    Py_ssize_t extent = PyNumber_AsSsize_t(PyTuple_GET_ITEM(self->shape, i), PyExc_ValueError);
    if (extent == -1 && PyErr_Occurred()) return -1;
    if (extent < 0) {
      PyErr_Format(PyExc_ValueError, "shape %R, expected no negative extent", self->shape);
      return -1;
    }
    self->tensor.shape[i] = extent;
  }
  return 0;
}

/* Strides and size, each product checked; an extent of 0 does not hide an overflow elsewhere. */
static int lay_out(Tensor *self) {
  Py_ssize_t count = 1, itemsize = (Py_ssize_t)itemsize_of(self);
  int empty = 0, overflow = 0;
  for (int i = self->tensor.ndim; i-- > 0;) {
    self->tensor.strides[i] = count;
    overflow |= __builtin_mul_overflow(count, itemsize, &self->byte_strides[i]);
    if (self->tensor.shape[i] == 0) empty = 1;
    else overflow |= __builtin_mul_overflow(count, self->tensor.shape[i], &count);
  }
  overflow |= __builtin_mul_overflow(count, itemsize, &self->nbytes);
  if (empty) self->nbytes = 0;
  if (!overflow) return 0;
  PyErr_Format(PyExc_ValueError, "shape %R of %zd-byte elements is beyond the address space",
               self->shape, itemsize);
  return -1;
}

static int check_size(Tensor *self) {
  Py_ssize_t found = self->source.len;
  if (self->incomplete ? found < self->nbytes : found == self->nbytes) return 0;
  PyErr_Format(PyExc_ValueError, "shape %R of %zu-byte elements, expected %s%zd bytes, found %zd",
               self->shape, itemsize_of(self), self->incomplete ? "fewer than " : "", self->nbytes,
               found);
  return -1;
}

static int take_source(Tensor *self, PyObject *data) {
  if (PyObject_GetBuffer(data, &self->source, PyBUF_SIMPLE) != 0) return -1;
  self->tensor.data = self->source.buf;
  self->tensor.device.device_type = DLPACK_CPU;
  if (check_size(self) != 0) return -1;
  if (self->source.readonly || self->incomplete || is_aligned(self)) return 0;
  PyErr_Format(PyExc_ValueError, "writable data at %p, expected alignment to %zu bytes",
               self->source.buf, alignment_of(self));
  return -1;
}

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"data", "shape", "dtype_code", "incomplete", NULL};
  PyObject *data, *shape;
  int code, bits, lanes, incomplete = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!(iii)|$p:TensorBase", names, &data,
                                   &PyTuple_Type, &shape, &code, &bits, &lanes, &incomplete))
    return NULL;
  Tensor *self = (Tensor *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->shape = Py_NewRef(shape);
  self->incomplete = incomplete;
  if (parse_dtype(self, code, bits, lanes) == 0 && parse_shape(self) == 0 && lay_out(self) == 0 &&
      take_source(self, data) == 0)
    return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

/* The type itself takes no part in garbage collection (a subclass with attributes does): were the
 * collector to see the reference to a memoryview, it would clear the view while we export it, and
 * CPython's memory_dealloc then crashes. */
static void tensor_dealloc(Tensor *self) {
  if (self->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)self);
  PyBuffer_Release(&self->source);
  PyMem_Free(self->tensor.shape);
  free(self->copy);
  Py_XDECREF(self->shape);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static int make_aligned_copy(Tensor *self) {
  size_t nbytes = (size_t)self->nbytes;
  self->copy = aligned_alloc(COPY_ALIGNMENT, (nbytes + COPY_ALIGNMENT - 1) & ~(size_t)63);
  if (self->copy == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  memcpy(self->copy, self->source.buf, nbytes);
  self->tensor.data = self->copy;
  return 0;
}

DLTensor *tensor_use(PyObject *object) {
  Tensor *self = (Tensor *)object;
  if (self->incomplete)
    return (DLTensor *)PyErr_Format(PyExc_ValueError,
                                    "incomplete: shape %R asks for %zd bytes, found %zd; only .raw "
                                    "can be read",
                                    self->shape, self->nbytes, self->source.len);
  if (!is_aligned(self) && make_aligned_copy(self) != 0) return NULL;
  return &self->tensor;
}

int tensor_is_readonly(PyObject *object) { return ((Tensor *)object)->source.readonly; }

static int refuse_buffer(const char *message) {
  PyErr_SetString(PyExc_BufferError, message);
  return -1;
}

/* A C-contiguous array also is a Fortran one if at most one extent differs from 1. */
static int is_fortran(const Tensor *self) {
  int wide = 0;
  for (int i = 0; i < self->tensor.ndim; i++) wide += self->tensor.shape[i] != 1;
  return wide <= 1 || self->nbytes == 0;
}

static int tensor_get_buffer(Tensor *self, Py_buffer *view, int flags) {
  const char *format = dtype_format(self->tensor.dtype);
  view->obj = NULL;
  if (format == NULL) return refuse_buffer("this dtype has no buffer format; use .raw");
  if ((flags & PyBUF_WRITABLE) && self->source.readonly)
    return refuse_buffer("the tensor is read-only");
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran(self))
    return refuse_buffer("the tensor is not Fortran contiguous");
  if (tensor_use((PyObject *)self) == NULL) return -1;
  view->buf = self->tensor.data;
  view->len = self->nbytes;
  view->readonly = self->source.readonly;
  view->itemsize = (Py_ssize_t)itemsize_of(self);
  view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)format : NULL;
  view->ndim = flags & PyBUF_ND ? self->tensor.ndim : 1;
  view->shape = flags & PyBUF_ND ? (Py_ssize_t *)self->tensor.shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->byte_strides : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  view->obj = Py_NewRef((PyObject *)self);
  return 0;
}

static PyObject *tensor_shape(Tensor *self, void *Py_UNUSED(closure)) {
  return Py_NewRef(self->shape);
}

static PyObject *tensor_dtype_code(Tensor *self, void *Py_UNUSED(closure)) {
  const DLDataType *dtype = &self->tensor.dtype;
  return Py_BuildValue("(iii)", dtype->code, dtype->bits, dtype->lanes);
}

static PyObject *tensor_nbytes(Tensor *self, void *Py_UNUSED(closure)) {
  return PyLong_FromSsize_t(self->nbytes);
}

static PyObject *tensor_raw(Tensor *self, void *Py_UNUSED(closure)) {
  return span_view((PyObject *)self, self->source.buf, self->source.len, self->source.readonly);
}

static PyObject *tensor_readonly(Tensor *self, void *Py_UNUSED(closure)) {
  return PyBool_FromLong(self->source.readonly);
}

static PyGetSetDef tensor_getset[] = {
    {"shape", (getter)tensor_shape, NULL, "The extents.", NULL},
    {"dtype_code", (getter)tensor_dtype_code, NULL, "DLPack's (code, bits, lanes).", NULL},
    {"nbytes", (getter)tensor_nbytes, NULL, "The size that shape and dtype ask for.", NULL},
    {"raw", (getter)tensor_raw, NULL,
     "The bytes as they were given, unaligned and possibly incomplete.", NULL},
    {"readonly", (getter)tensor_readonly, NULL, "Whether the bytes may only be read.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyBufferProcs tensor_buffer = {.bf_getbuffer = (getbufferproc)tensor_get_buffer};

PyTypeObject TensorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.TensorBase",
    .tp_doc = "A dense CPU array over borrowed or own bytes, laid out as a DLTensor.",
    .tp_basicsize = sizeof(Tensor),
    .tp_weaklistoffset = offsetof(Tensor, weakrefs),
    .tp_new = tensor_new,
    .tp_dealloc = (destructor)tensor_dealloc,
    .tp_getset = tensor_getset,
    .tp_as_buffer = &tensor_buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
};
