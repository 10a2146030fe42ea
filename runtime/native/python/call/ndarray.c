/* NumPy arrays as arguments, read from their struct. */
#include "python/call/convert.h"

#include "python/call/dtype_cache.h"

/* PyArrayObject_fields (numpy/ndarraytypes.h), the same in NumPy 1.7 to 2.x. The struct of a dtype
 * has changed, so it is never read. */
typedef struct {
  PyObject_HEAD
  char *data;
  int nd;
  Py_ssize_t *dimensions;
  Py_ssize_t *strides; /* in bytes */
  PyObject *base;
  PyObject *descr;
  int flags;
} ndarray;

/* NPY_ARRAY_WRITEABLE and NPY_ARRAY_WARN_ON_WRITE: NumPy warns when write access is requested. */
static const unsigned WRITEABLE = 0x400, WARN_ON_WRITE = 1u << 31;

PyTypeObject *ndarray_type;

/* Dimensions are copied as int64_t. */
_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "a 64-bit machine");

static int copy_dims(struct call_frame *frame, Py_ssize_t index, struct hold *hold,
                     const ndarray *array, const struct cached_dtype *dtype) {
  if (hold_dims(frame, index, hold, array->nd) != 0) return -1;
  for (int i = 0; i < array->nd; i++) {
    if (array->strides[i] & dtype->odd_bytes)
      return refuse_strides(frame, index, array->strides[i], (Py_ssize_t)dtype->odd_bytes + 1);
    hold->tensor.shape[i] = array->dimensions[i];
    hold->tensor.strides[i] = array->strides[i] >> dtype->shift;
  }
  return 0;
}

static int pass(struct call_frame *frame, Py_ssize_t index, const ndarray *array,
                const struct cached_dtype *dtype) {
  struct hold *hold = frame_hold(frame, HOLD_MEMORY);
  if (copy_dims(frame, index, hold, array, dtype) != 0) return -1;
  hold->tensor.data = array->data;
  hold->tensor.device = (DLDevice){.device_type = DLPACK_CPU, .device_id = 0};
  hold->tensor.dtype = dtype->dtype;
  hold->tensor.byte_offset = 0;
  return frame_pass(frame, index, DSO_DLTENSOR_PTR, &hold->tensor);
}

/* Pass an array that is read-only or that warns about write access. */
static int pass_unwritable(struct call_frame *frame, Py_ssize_t index, PyObject *object,
                           const struct cached_dtype *dtype) {
  const ndarray *array = (const ndarray *)object;
  int is_readonly = !((unsigned)array->flags & WRITEABLE);
  if (callee_writes(frame->callee, index))
    return is_readonly ? refuse_readonly(frame, index)
                       : argument_buffer(frame, index, object); /* NumPy warns there */
  if (pass(frame, index, array, dtype) != 0) return -1;
  return is_readonly ? frame_mark_readonly(frame, index) : 0;
}

static int argument_other_dtype(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  int status = argument_by_code(frame, index, object);
  return status == 1 ? argument_buffer(frame, index, object) : status;
}

int argument_ndarray(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  const ndarray *array = (const ndarray *)object;
  const struct cached_dtype *dtype = dtype_cache_find(array->descr);
  if (dtype == NULL && (dtype = dtype_cache_add(array->descr, object)) == NULL)
    return PyErr_Occurred() ? -1 : argument_other_dtype(frame, index, object);
  if (((unsigned)array->flags & (WRITEABLE | WARN_ON_WRITE)) != WRITEABLE)
    return pass_unwritable(frame, index, object, dtype);
  return pass(frame, index, array, dtype);
}

/* ---- Recognising the struct: arrays of several forms are compared with their buffers. Plain
 * fields are compared before pointers are followed. */

static int same_dims(const Py_ssize_t *dims, const Py_ssize_t *expected, int ndim) {
  if (ndim > 0 && (dims == NULL || (uintptr_t)dims % sizeof *dims != 0)) return 0;
  for (int i = 0; i < ndim; i++)
    if (dims[i] != expected[i]) return 0;
  return 1;
}

static int fits(const ndarray *array, const Py_buffer *view, const PyObject *descr) {
  int writeable = ((unsigned)array->flags & WRITEABLE) != 0;
  return array->data == view->buf && array->nd == view->ndim && array->descr == descr &&
         writeable == !view->readonly && !((unsigned)array->flags & WARN_ON_WRITE) &&
         same_dims(array->dimensions, view->shape, view->ndim) &&
         same_dims(array->strides, view->strides, view->ndim);
}

/* Releases `probe`, which may be NULL. */
static int probe_fits(PyTypeObject *type, PyObject *probe) {
  Py_buffer view;
  int status = 0;
  PyObject *descr = probe ? PyObject_GetAttrString(probe, "dtype") : NULL;
  if (descr != NULL && Py_IS_TYPE(probe, type) &&
      PyObject_GetBuffer(probe, &view, PyBUF_RECORDS_RO) == 0) {
    status = fits((const ndarray *)probe, &view, descr);
    PyBuffer_Release(&view);
  }
  PyErr_Clear();
  Py_XDECREF(descr);
  Py_XDECREF(probe);
  return status;
}

/* numpy.ndarray(shape, dtype, buffer, offset, strides, order) */
static int struct_is_known(PyTypeObject *type) {
  PyObject *make = (PyObject *)type;
  return type->tp_basicsize >= (Py_ssize_t)sizeof(ndarray) &&
         probe_fits(type,
                    PyObject_CallFunction(make, "(nn)s", (Py_ssize_t)2, (Py_ssize_t)3, "f4")) &&
         probe_fits(type, PyObject_CallFunction(make, "(nn)sOiOs", (Py_ssize_t)5, (Py_ssize_t)7,
                                                "i2", Py_None, 0, Py_None, "F")) &&
         probe_fits(type, PyObject_CallFunction(make, "(n)sy#i(n)", (Py_ssize_t)3, "u4",
                                                "0123456789abcdefghijklmnopqr", (Py_ssize_t)28, 4,
                                                (Py_ssize_t)8)) &&
         probe_fits(type, PyObject_CallFunction(make, "()s", "c16"));
}

int ndarray_recognise(PyTypeObject *type) {
  static int is_known;
  if (is_known) return 0;
  PyObject *numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  PyObject *class = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
  if (class == NULL) PyErr_Clear();
  if (class != NULL && class == (PyObject *)type) {
    is_known = 1;
    if (struct_is_known(type)) ndarray_type = (PyTypeObject *)Py_NewRef(class);
  }
  Py_XDECREF(class);
  return ndarray_type == type;
}
