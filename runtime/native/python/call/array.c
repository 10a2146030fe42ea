/* Arrays as arguments, by the buffer protocol or by a `__dlpack__` method. */
#include "python/call/convert.h"

#include <string.h>

#include "abi/dtype.h"
#include "python/exception.h"
#include "abi/strides.h"

/* Copy shape and strides. Buffer strides count bytes; a DLTensor's count elements. A buffer of
 * ctypes has no strides; the argument always has them. */
static int copy_dims(struct call_frame *frame, Py_ssize_t index, struct hold *hold) {
  const Py_buffer *view = &hold->buffer;
  if (hold_dims(frame, index, hold, view->ndim) != 0) return -1;
  for (int i = 0; i < view->ndim; i++) hold->tensor.shape[i] = view->shape[i];
  if (view->strides == NULL) {
    strides_set(&hold->tensor);
    return 0;
  }
  for (int i = 0; i < view->ndim; i++) {
    if (view->strides[i] % view->itemsize != 0)
      return refuse_strides(frame, index, view->strides[i], view->itemsize);
    hold->tensor.strides[i] = view->strides[i] / view->itemsize;
  }
  return 0;
}

static int get_buffer(struct call_frame *frame, Py_ssize_t index, PyObject *object,
                      Py_buffer *view) {
  int written = callee_writes(frame->callee, index);
  if (PyObject_GetBuffer(object, view, written ? PyBUF_RECORDS : PyBUF_RECORDS_RO) == 0) return 0;
  if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_TypeError))
    return -1;
  PyObject *cause = exception_take();
  int readable = written && PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) == 0;
  if (readable) PyBuffer_Release(view);
  PyErr_Clear();
  exception_set(cause);
  if (readable) return refuse_readonly(frame, index);
  return raise_argument_error(frame, index, PyExc_TypeError,
                              "expected an array with strides and a dtype, found %s without them",
                              Py_TYPE(object)->tp_name);
}

/* A parameter `void *` takes the bytes of any contiguous buffer; one of 8-bit integers also takes
 * buffers of text. */
static int takes_bytes(const struct call_frame *frame, Py_ssize_t index, const Py_buffer *view) {
  const struct param *param = callee_param(frame->callee, index);
  if (param == NULL) return 0;
  if (param->kind == CODE_VOID) return 1;
  const char *format = view->format + strspn(view->format, "0123456789");
  return param->kind == CODE_BYTES && (strcmp(format, "s") == 0 || strcmp(format, "c") == 0);
}

static int pass_bytes(struct call_frame *frame, Py_ssize_t index, struct hold *hold) {
  if (!PyBuffer_IsContiguous(&hold->buffer, 'C'))
    return raise_argument_error(frame, index, PyExc_ValueError,
                                "expected a contiguous array, found one with strides");
  hold_set_dims(hold, hold->dims, 1);
  hold->dims[0] = hold->buffer.len;
  hold->dims[1] = 1;
  hold->tensor.dtype = (DLDataType){.code = DTYPE_UINT, .bits = 8, .lanes = 1};
  frame_pass(frame, index, DSO_DLTENSOR_PTR, &hold->tensor);
  return hold->buffer.readonly ? frame_mark_readonly(frame, index) : 0;
}

int argument_buffer(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  Py_buffer view;
  if (get_buffer(frame, index, object, &view) != 0) return -1;
  struct hold *hold = frame_hold(frame, HOLD_BUFFER);
  hold->buffer = view;
  DLTensor *tensor = &hold->tensor;
  tensor->data = view.buf;
  tensor->device = (DLDevice){.device_type = DLPACK_CPU, .device_id = 0};
  tensor->byte_offset = 0;
  int is_known = dtype_from_format(view.format, (size_t)view.itemsize, &tensor->dtype) == 0;
  if (!is_known && takes_bytes(frame, index, &view)) return pass_bytes(frame, index, hold);
  if (!is_known)
    return raise_argument_error(frame, index, PyExc_TypeError,
                                "unsupported dtype, expected a native int, uint, float, complex "
                                "or bool, found format '%s' of %zd bytes",
                                view.format, view.itemsize);
  if (copy_dims(frame, index, hold) != 0) return -1;
  frame_pass(frame, index, DSO_DLTENSOR_PTR, &hold->tensor);
  return view.readonly ? frame_mark_readonly(frame, index) : 0;
}

PyObject *array_call_dlpack(PyObject *method) {
  static PyObject *keywords, *version;
  if (keywords == NULL) keywords = Py_BuildValue("(s)", "max_version");
  if (version == NULL) version = Py_BuildValue("(ii)", DLPACK_MAJOR, 0);
  if (keywords == NULL || version == NULL) return NULL;
  PyObject *capsule = PyObject_Vectorcall(method, &version, 0, keywords);
  if (capsule != NULL || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();
  return PyObject_CallNoArgs(method);
}

/* Move the capsule's tensor into a hold; NULL with an exception set. A consumer renames the
 * capsule, so that the capsule's destructor does not free the tensor (DLPack, Python
 * specification). */
static struct hold *consume_capsule(struct call_frame *frame, Py_ssize_t index, PyObject *capsule) {
  struct hold *hold = NULL;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    void *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    hold = frame_hold(frame, HOLD_DLPACK_VERSIONED);
    hold->dlpack_versioned = managed;
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    void *managed = PyCapsule_GetPointer(capsule, "dltensor");
    PyCapsule_SetName(capsule, "used_dltensor");
    hold = frame_hold(frame, HOLD_DLPACK);
    hold->dlpack = managed;
  } else {
    raise_argument_error(frame, index, PyExc_TypeError,
                         "expected an unused 'dltensor' capsule from __dlpack__, found %R",
                         capsule);
  }
  return hold;
}

/* Check the tensor of a hold and return it, or NULL with an exception set. */
static const DLTensor *managed_tensor(struct call_frame *frame, Py_ssize_t index,
                                      struct hold *hold) {
  if (hold->kind == HOLD_DLPACK) return &hold->dlpack->tensor;
  const DLManagedTensorVersioned *managed = hold->dlpack_versioned;
  if (managed->major != DLPACK_MAJOR) {
    raise_argument_error(frame, index, PyExc_ValueError, "expected DLPack version %d, found %u.%u",
                         DLPACK_MAJOR, managed->major, managed->minor);
    return NULL;
  }
  if ((managed->flags & DLPACK_READ_ONLY) && callee_writes(frame->callee, index)) {
    refuse_readonly(frame, index);
    return NULL;
  }
  if (dlpack_is_padded(managed)) {
    raise_argument_error(frame, index, PyExc_ValueError, "%s", DLPACK_PADDED_TEXT);
    return NULL;
  }
  return &managed->tensor;
}

static int pass_capsule(struct call_frame *frame, Py_ssize_t index, PyObject *capsule) {
  struct hold *hold = consume_capsule(frame, index, capsule);
  const DLTensor *tensor = hold ? managed_tensor(frame, index, hold) : NULL;
  if (tensor == NULL) return -1;
  if (hold_tensor(frame, index, hold, tensor) != 0) return -1;
  frame_pass(frame, index, DSO_DLTENSOR_PTR, &hold->tensor);
  int is_readonly = hold->kind == HOLD_DLPACK_VERSIONED &&
                    (hold->dlpack_versioned->flags & DLPACK_READ_ONLY) != 0;
  return is_readonly ? frame_mark_readonly(frame, index) : 0;
}

/* Return true if PyTorch refused to share a tensor because a gradient flows through it. The
 * exception that is set stays set. */
static int has_gradient(PyObject *object) {
  PyObject *pending = exception_take();
  PyObject *value = PyObject_GetAttrString(object, "requires_grad");
  int is_set = value == Py_True;
  PyErr_Clear();
  Py_XDECREF(value);
  exception_set(pending);
  return is_set;
}

int argument_dlpack(struct call_frame *frame, Py_ssize_t index, PyObject *object,
                    PyObject *method) {
  PyObject *capsule = array_call_dlpack(method);
  if (capsule == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
    if (has_gradient(object))
      return raise_argument_error(frame, index, PyExc_ValueError,
                                  "expected an array that can be shared, found a tensor with "
                                  "requires_grad; pass its .detach()");
    return raise_argument_error(frame, index, PyExc_ValueError,
                                "expected an array that can be shared, found %s that cannot",
                                Py_TYPE(object)->tp_name);
  }
  int status = pass_capsule(frame, index, capsule);
  Py_DECREF(capsule);
  return status;
}
