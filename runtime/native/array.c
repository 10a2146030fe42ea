#include "convert.h"
#include "dtype.h"
#include "exception.h"

/* A new hold for `hold_kind` in the frame; it counts from here on and will be released. */
static struct hold *add_hold(struct frame *frame, int hold_kind) {
  struct hold *hold = &frame->holds[frame->num_holds++];
  hold->kind = hold_kind;
  hold->more_strides = NULL;
  return hold;
}

static void release(struct hold *hold) {
  PyMem_Free(hold->more_strides);
  switch (hold->kind) {
    case HOLD_BYTES: break;
    case HOLD_BUFFER: PyBuffer_Release(&hold->buffer); break;
    case HOLD_DLPACK:
      if (hold->dlpack->deleter != NULL) hold->dlpack->deleter(hold->dlpack);
      break;
    case HOLD_DLPACK_VERSIONED:
      if (hold->dlpack_versioned->deleter != NULL)
        hold->dlpack_versioned->deleter(hold->dlpack_versioned);
      break;
  }
}

void frame_release(struct frame *frame) {
  PyObject *pending = exception_take(); /* a deleter may run Python code, which would clear it */
  while (frame->num_holds > 0) release(&frame->holds[--frame->num_holds]);
  if (pending != NULL) exception_set(pending);
}

static int pass_tensor(struct frame *frame, Py_ssize_t index, struct hold *hold) {
  frame->args[index].type_index = DSO_DLTENSOR_PTR;
  frame->args[index].small_len = 0;
  frame->args[index].v_ptr = &hold->tensor;
  return 0;
}

/* Room for the strides of `ndim` dimensions, set as the tensor's; 0, or -1 with MemoryError. */
static int make_strides(struct hold *hold, int ndim) {
  hold->tensor.strides = hold->strides;
  if (ndim <= HOLD_DIMS) return 0;
  hold->tensor.strides = hold->more_strides = PyMem_New(int64_t, (size_t)ndim);
  if (hold->more_strides != NULL) return 0;
  PyErr_NoMemory();
  return -1;
}

static int refuse_ndim(struct frame *frame, Py_ssize_t index, int ndim) {
  return raise_argument_error(frame->target, index, PyExc_ValueError,
                              "expected at most %d dimensions, found %d", MAX_DIMS, ndim);
}

/* DLPack allows NULL strides for a compact tensor, and ctypes gives a buffer without them; what we
 * pass on always has them. */
static int compact_strides(struct hold *hold) {
  DLTensor *tensor = &hold->tensor;
  if (tensor->strides != NULL) return 0;
  if (make_strides(hold, tensor->ndim) != 0) return -1;
  uint64_t stride = 1;
  for (int i = tensor->ndim; i-- > 0; stride *= (uint64_t)tensor->shape[i])
    tensor->strides[i] = (int64_t)stride;
  return 0;
}

/* Buffer strides count bytes, a DLTensor's count elements. */
static int element_strides(struct frame *frame, Py_ssize_t index, struct hold *hold) {
  const Py_buffer *view = &hold->buffer;
  hold->tensor.strides = NULL;
  if (view->strides == NULL) return compact_strides(hold);
  if (make_strides(hold, view->ndim) != 0) return -1;
  for (int i = 0; i < view->ndim; i++) {
    if (view->strides[i] % view->itemsize != 0)
      return raise_argument_error(frame->target, index, PyExc_ValueError,
                                  "expected strides of whole elements, found %zd bytes between "
                                  "elements of %zd",
                                  view->strides[i], view->itemsize);
    hold->tensor.strides[i] = view->strides[i] / view->itemsize;
  }
  return 0;
}

static int get_buffer(struct frame *frame, Py_ssize_t index, PyObject *object, Py_buffer *view) {
  int written = argument_is_written(frame, index);
  if (PyObject_GetBuffer(object, view, written ? PyBUF_RECORDS : PyBUF_RECORDS_RO) == 0) return 0;
  if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_TypeError))
    return -1;
  PyObject *cause = exception_take();
  int readable = written && PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) == 0;
  if (readable) PyBuffer_Release(view);
  PyErr_Clear();
  exception_set(cause);
  if (readable)
    return raise_argument_error(frame->target, index, PyExc_ValueError,
                                "expected a writable array, found a read-only one");
  return raise_argument_error(frame->target, index, PyExc_TypeError,
                              "expected an array with strides and a dtype, found %s that has none",
                              Py_TYPE(object)->tp_name);
}

/* shape may be used in place: Py_ssize_t is int64_t on every machine that we load on. */
_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "a 64-bit machine");

int argument_buffer(struct frame *frame, Py_ssize_t index, PyObject *object) {
  Py_buffer view;
  if (get_buffer(frame, index, object, &view) != 0) return -1;
  struct hold *hold = add_hold(frame, HOLD_BUFFER);
  hold->buffer = view;
  DLTensor *tensor = &hold->tensor;
  if (view.ndim > MAX_DIMS) return refuse_ndim(frame, index, view.ndim);
  if (dtype_from_format(view.format, (size_t)view.itemsize, &tensor->dtype) != 0)
    return raise_argument_error(frame->target, index, PyExc_TypeError,
                                "unsupported dtype, expected a native int, uint, float, complex "
                                "or bool, found format '%s' of %zd bytes",
                                view.format, view.itemsize);
  tensor->data = view.buf;
  tensor->device.device_type = DLPACK_CPU;
  tensor->device.device_id = 0;
  tensor->ndim = view.ndim;
  tensor->shape = (int64_t *)view.shape;
  tensor->byte_offset = 0;
  if (element_strides(frame, index, hold) != 0) return -1;
  return pass_tensor(frame, index, hold);
}

/* Call method(max_version=(1, 0)); a producer of DLPack 0.x does not know the keyword. */
static PyObject *call_dlpack(PyObject *method) {
  static PyObject *keywords, *version;
  if (keywords == NULL) keywords = Py_BuildValue("(s)", "max_version");
  if (version == NULL) version = Py_BuildValue("(ii)", DLPACK_MAJOR, 0);
  if (keywords == NULL || version == NULL) return NULL;
  PyObject *capsule = PyObject_Vectorcall(method, &version, 0, keywords);
  if (capsule != NULL || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();
  return PyObject_CallNoArgs(method);
}

/* Take over the capsule's tensor as a hold; NULL with an exception set. A consumer renames the
 * capsule, so that its destructor leaves the tensor alone (DLPack, Python specification). */
static struct hold *consume_capsule(struct frame *frame, Py_ssize_t index, PyObject *capsule) {
  struct hold *hold = NULL;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    void *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    PyCapsule_SetName(capsule, "used_dltensor_versioned");
    hold = add_hold(frame, HOLD_DLPACK_VERSIONED);
    hold->dlpack_versioned = managed;
  } else if (PyCapsule_IsValid(capsule, "dltensor")) {
    void *managed = PyCapsule_GetPointer(capsule, "dltensor");
    PyCapsule_SetName(capsule, "used_dltensor");
    hold = add_hold(frame, HOLD_DLPACK);
    hold->dlpack = managed;
  } else {
    raise_argument_error(frame->target, index, PyExc_TypeError,
                         "__dlpack__ gave no unused 'dltensor' capsule, found %R", capsule);
  }
  return hold;
}

/* The tensor of a hold, or NULL with an exception set. */
static const DLTensor *managed_tensor(struct frame *frame, Py_ssize_t index, struct hold *hold) {
  if (hold->kind == HOLD_DLPACK) return &hold->dlpack->tensor;
  const DLManagedTensorVersioned *managed = hold->dlpack_versioned;
  if (managed->major != DLPACK_MAJOR) {
    raise_argument_error(frame->target, index, PyExc_ValueError,
                         "expected DLPack version %d, found %u.%u", DLPACK_MAJOR, managed->major,
                         managed->minor);
    return NULL;
  }
  if ((managed->flags & DLPACK_READ_ONLY) && argument_is_written(frame, index)) {
    raise_argument_error(frame->target, index, PyExc_ValueError,
                         "expected a writable array, found a read-only one");
    return NULL;
  }
  return &managed->tensor;
}

static int pass_capsule(struct frame *frame, Py_ssize_t index, PyObject *capsule) {
  struct hold *hold = consume_capsule(frame, index, capsule);
  const DLTensor *tensor = hold ? managed_tensor(frame, index, hold) : NULL;
  if (tensor == NULL) return -1;
  if (tensor->ndim < 0 || tensor->ndim > MAX_DIMS) return refuse_ndim(frame, index, tensor->ndim);
  hold->tensor = *tensor;
  if (compact_strides(hold) != 0) return -1;
  return pass_tensor(frame, index, hold);
}

int argument_dlpack(struct frame *frame, Py_ssize_t index, PyObject *object, PyObject *method) {
  PyObject *capsule = call_dlpack(method);
  if (capsule == NULL) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
    return raise_argument_error(frame->target, index, PyExc_ValueError,
                                "expected an array that can be shared, found %s that cannot",
                                Py_TYPE(object)->tp_name);
  }
  int status = pass_capsule(frame, index, capsule);
  Py_DECREF(capsule);
  return status;
}
