/* TensorBase: construction, deletion and attributes. */
#include "python/tensor/tensor.h"

#include <stdlib.h>
#include <string.h>

#include "python/device.h"
#include "abi/dlpack.h"
#include "python/exception.h"
#include "abi/heap.h"
#include "abi/object.h"
#include "python/proof.h"
#include "python/span.h"
#include "device/tensor_object.h"

enum { COPY_ALIGNMENT = 64 };

/* Return the largest power of two up to 16 that divides the item size. Vector code needs it. */
static size_t alignment_of(const Tensor *self) {
  size_t itemsize = tensor_itemsize(self), power = itemsize & (0 - itemsize);
  return power < 16 ? power : 16;
}

static int is_aligned(const Tensor *self) {
  return self->nbytes == 0 || (uintptr_t)self->tensor.data % alignment_of(self) == 0;
}

/* ---- The constructor: tensors over a Python buffer */

static int check_size(Tensor *self) {
  Py_ssize_t found = self->source.len;
  int incomplete = self->state == STATE_INCOMPLETE;
  if (incomplete ? found != self->nbytes : found == self->nbytes) return 0;
  return raise_format(PyExc_ValueError,
                      "shape %R of %d-bit elements, expected %s%zd bytes, found %zd", self->shape,
                      self->tensor.dtype.bits * self->tensor.dtype.lanes,
                      incomplete ? "other than " : "", self->nbytes, found);
}

static int take_source(Tensor *self, PyObject *data) {
  if (PyObject_GetBuffer(data, &self->source, PyBUF_SIMPLE) != 0) return -1;
  self->tensor.data = self->source.buf;
  self->tensor.device.device_type = DLPACK_CPU;
  self->is_readonly = self->source.readonly;
  if (check_size(self) != 0) return -1;
  self->proof = proof_of(data);
  if (self->proof != NULL && self->state == STATE_COMPLETE) self->state = STATE_UNPROVED;
  if (self->is_readonly || self->state == STATE_INCOMPLETE || is_aligned(self)) return 0;
  return raise_format(PyExc_ValueError, "writable data at %p, expected alignment to %zu bytes",
                      self->source.buf, alignment_of(self));
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
  self->state = incomplete ? STATE_INCOMPLETE : STATE_COMPLETE;
  if (tensor_parse_dtype(self, code, bits, lanes) == 0 && tensor_lay_out(self) == 0 &&
      take_source(self, data) == 0)
    return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

/* ---- Tensors over memory of a library */

/* The class runtime.Tensor, borrowed: imported at the first tensor, and kept. An import of what is
 * imported already takes a microsecond. */
static PyTypeObject *tensor_class(void) {
  static PyObject *class;
  if (class != NULL) return (PyTypeObject *)class;
  PyObject *file = PyImport_ImportModule("runtime.tensors.tensor");
  PyObject *found = file ? PyObject_GetAttrString(file, "Tensor") : NULL;
  Py_XDECREF(file);
  if (class == NULL) class = found;
  else Py_XDECREF(found); /* another thread was first */
  return (PyTypeObject *)class;
}

/* Make a runtime.Tensor with the layout of `tensor`. */
static Tensor *make_alike(const DLTensor *tensor) {
  PyTypeObject *class = tensor_class();
  if (class == NULL) return NULL;
  Tensor *self = (Tensor *)class->tp_alloc(class, 0);
  if (self == NULL || tensor_copy_layout(self, tensor) == 0) return self;
  Py_DECREF(self);
  return NULL;
}

PyObject *tensor_from_object(dso_object *object, PyObject *library) {
  Tensor *self = make_alike(&((dso_tensor_object *)(void *)object)->tensor);
  if (self == NULL) return NULL;
  object_retain(object);
  self->object = object;
  self->library = Py_XNewRef(library);
  self->is_readonly = (tensor_object_flags(object) & TENSOR_READ_ONLY) != 0;
  return (PyObject *)self;
}

PyObject *tensor_borrow(const DLTensor *tensor, int is_readonly) {
  Tensor *self = make_alike(tensor);
  if (self != NULL) self->is_readonly = is_readonly;
  return (PyObject *)self;
}

int tensor_end_borrow(PyObject *object) {
  Tensor *self = (Tensor *)object;
  self->state = STATE_EXPIRED;
  return self->exports == 0 ? 0 : -1;
}

/* The library is released last, because it may contain the object's deleter. */
static void release_object(Tensor *self) {
  PyObject *pending = exception_take(); /* a deleter may run Python, which would clear it */
  object_release(self->object);
  Py_XDECREF(self->library);
  if (pending != NULL) exception_set(pending);
}

/* The type does not support garbage collection (a subclass with attributes does). If the collector
 * saw the reference to a memoryview, it would clear the view while this tensor holds a buffer of
 * it. CPython's memory_dealloc would then crash. */
static void tensor_dealloc(Tensor *self) {
  if (self->weakrefs != NULL) PyObject_ClearWeakRefs((PyObject *)self);
  PyBuffer_Release(&self->source);
  if (self->object != NULL) release_object(self);
  PyMem_Free(self->tensor.shape);
  free(self->copy);
  Py_XDECREF(self->shape);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ---- Access */

static int make_aligned_copy(Tensor *self) {
  size_t nbytes = (size_t)self->nbytes;
  self->copy = heap_new_aligned(COPY_ALIGNMENT, (nbytes + COPY_ALIGNMENT - 1) & ~(size_t)63);
  if (self->copy == NULL) return as_status(raise_no_memory());
  memcpy(self->copy, self->source.buf, nbytes);
  self->tensor.data = self->copy;
  return 0;
}

static void *refuse_use(const Tensor *self) {
  if (self->state == STATE_EXPIRED)
    return PyErr_Format(
        PyExc_ValueError,
        "the tensor was borrowed for a call that has ended; copy it during the call");
  return PyErr_Format(PyExc_ValueError,
                      "incomplete: shape %R, expected %zd bytes, found %zd; read .raw instead",
                      self->shape, self->nbytes, self->source.len);
}

/* Once: the bytes leave the tensor by tensor_use and tensor_raw only. */
int tensor_prove(PyObject *object) {
  Tensor *self = (Tensor *)object;
  if (proof_make(self->proof, self->source.buf, self->source.len, 0) != 0) return -1;
  self->proof = NULL;
  if (self->state == STATE_UNPROVED) self->state = STATE_COMPLETE;
  return 0;
}

DLTensor *tensor_use(PyObject *object) {
  Tensor *self = (Tensor *)object;
  if (self->state == STATE_UNPROVED && tensor_prove(object) != 0) return NULL;
  if (self->state != STATE_COMPLETE) return refuse_use(self);
  if (self->source.obj != NULL && !is_aligned(self) && make_aligned_copy(self) != 0) return NULL;
  return &self->tensor;
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

static PyObject *tensor_device(Tensor *self, void *Py_UNUSED(closure)) {
  return device_new(self->tensor.device);
}

/* Return the source's bytes. Without a source return the memory itself, if the CPU can read it and
 * it is contiguous. */
static PyObject *tensor_raw(Tensor *self, void *Py_UNUSED(closure)) {
  int device = self->tensor.device.device_type;
  if (tensor_prove((PyObject *)self) != 0) return NULL;
  if (self->source.obj != NULL)
    return span_view((PyObject *)self, self->source.buf, self->source.len, self->is_readonly);
  if (tensor_use((PyObject *)self) == NULL) return NULL;
  if (self->is_compact && self->object != NULL &&
      (device == DLPACK_CPU || device == DLPACK_CUDA_HOST))
    return span_view((PyObject *)self, self->tensor.data, self->nbytes, self->is_readonly);
  return PyErr_Format(
      PyExc_BufferError,
      "raw, expected a contiguous tensor in the memory of the CPU that is not borrowed");
}

static PyObject *tensor_readonly(Tensor *self, void *Py_UNUSED(closure)) {
  return PyBool_FromLong(self->is_readonly);
}

static PyGetSetDef tensor_getset[] = {
    {"shape", (getter)tensor_shape, NULL, "The extents.", NULL},
    {"dtype_code", (getter)tensor_dtype_code, NULL, "DLPack's (code, bits, lanes).", NULL},
    {"device", (getter)tensor_device, NULL, "The Device that the memory belongs to.", NULL},
    {"nbytes", (getter)tensor_nbytes, NULL, "The size in bytes, by shape and dtype.", NULL},
    {"raw", (getter)tensor_raw, NULL, "The bytes of the source, possibly unaligned or incomplete.",
     NULL},
    {"readonly", (getter)tensor_readonly, NULL, "True if the memory must not be written.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject TensorBase_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.TensorBase",
    .tp_doc = "A dense array over borrowed or owned memory, laid out as a DLTensor.",
    .tp_basicsize = sizeof(Tensor),
    .tp_weaklistoffset = offsetof(Tensor, weakrefs),
    .tp_new = tensor_new,
    .tp_dealloc = (destructor)tensor_dealloc,
    .tp_methods = tensor_methods,
    .tp_getset = tensor_getset,
    .tp_as_buffer = &tensor_buffer,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
};
