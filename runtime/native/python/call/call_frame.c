/* The frame of a call: filling and releasing the holds of its arguments. */
#include "python/call/call_frame.h"

#include "abi/strides.h"
#include "python/call/callback.h"
#include "python/call/handle.h"
#include "python/exception.h"
#include "vm/vm.h"

int hold_more_dims(struct call_frame *frame, Py_ssize_t index, struct hold *hold, int ndim) {
  if (ndim < 0 || ndim > TENSOR_MAX_DIMS)
    return raise_argument_error(frame, index, PyExc_ValueError,
                                "expected at most %d dimensions, found %d", TENSOR_MAX_DIMS, ndim);
  frame->needs_release |= RELEASE;
  hold->more_dims = PyMem_New(int64_t, 2 * (size_t)ndim);
  if (hold->more_dims != NULL) return hold_set_dims(hold, hold->more_dims, ndim);
  return as_status(raise_no_memory());
}

int hold_tensor(struct call_frame *frame, Py_ssize_t index, struct hold *hold,
                const DLTensor *tensor) {
  if (hold_dims(frame, index, hold, tensor->ndim) != 0) return -1;
  DLTensor *copy = &hold->tensor;
  for (int i = 0; i < tensor->ndim; i++) copy->shape[i] = tensor->shape[i];
  if (tensor->strides == NULL) strides_set(copy);
  else
    for (int i = 0; i < tensor->ndim; i++) copy->strides[i] = tensor->strides[i];
  copy->data = tensor->data;
  copy->device = tensor->device;
  copy->dtype = tensor->dtype;
  copy->byte_offset = tensor->byte_offset;
  return 0;
}

/* True if the core itself receives the call: bytecode, or a static Function object, which has no
 * deleter. */
static int is_own(const dso_object *called) {
  return called != NULL && (called->deleter == NULL || vm_closure_of(called) != NULL);
}

int frame_mark_readonly(struct call_frame *frame, Py_ssize_t index) {
  const struct param *param = callee_param(frame->callee, index);
  int is_examined = param != NULL && param->kind == CODE_ANY;
  if (is_examined || frame->is_result || is_own(frame->callee->object))
    if (frame->args[index].type_index == DSO_DLTENSOR_PTR)
      frame->args[index].small_len = DSO_READ_ONLY;
  return 0;
}

int refuse_readonly(struct call_frame *frame, Py_ssize_t index) {
  return raise_argument_error(frame, index, PyExc_ValueError,
                              "expected a writable array, found a read-only one");
}

int refuse_strides(struct call_frame *frame, Py_ssize_t index, Py_ssize_t stride,
                   Py_ssize_t itemsize) {
  return raise_argument_error(frame, index, PyExc_ValueError,
                              "expected strides of whole elements, found %zd bytes between "
                              "elements of %zd",
                              stride, itemsize);
}

struct handle *frame_handle(const struct call_frame *frame, Py_ssize_t index) {
  for (int i = 0; i < frame->num_holds; i++) {
    const struct hold *hold = &frame->holds[i];
    if (hold->kind == HOLD_HANDLE && hold->index == index) return hold->handle;
  }
  return NULL;
}

/* ---- The end of the call */

PyObject *frame_finish(struct call_frame *frame, PyObject *value) {
  for (int i = 0; value != NULL && i < frame->num_holds; i++) {
    if (frame->holds[i].kind != HOLD_PACKED) continue;
    PyObject *finish = PyTuple_GET_ITEM(frame->holds[i].packed, 2);
    PyObject *none = finish != Py_None ? PyObject_CallNoArgs(finish) : Py_NewRef(Py_None);
    if (none == NULL) Py_CLEAR(value);
    Py_XDECREF(none);
  }
  return value;
}

static void release(struct hold *hold) {
  PyMem_Free(hold->more_dims);
  switch (hold->kind) {
    case HOLD_MEMORY: break;
    case HOLD_BUFFER: PyBuffer_Release(&hold->buffer); break;
    case HOLD_DLPACK:
      if (hold->dlpack->deleter != NULL) hold->dlpack->deleter(hold->dlpack);
      break;
    case HOLD_DLPACK_VERSIONED:
      if (hold->dlpack_versioned->deleter != NULL)
        hold->dlpack_versioned->deleter(hold->dlpack_versioned);
      break;
    case HOLD_FUNCTION: callback_end_call(hold->function); break;
    case HOLD_OBJECT: object_release(hold->object); break;
    case HOLD_HANDLE: handle_end_use(hold->handle); break;
    case HOLD_KEPT: Py_DECREF(hold->kept); break;
    case HOLD_PACKED:
      handles_end_use(PyTuple_GET_ITEM(hold->packed, 1));
      Py_DECREF(hold->packed);
      break;
  }
}

void frame_release(struct call_frame *frame) {
  /* A deleter may run Python code, which would clear the exception. */
  PyObject *pending = PyErr_Occurred() ? exception_take() : NULL;
  while (frame->num_holds > 0) release(&frame->holds[--frame->num_holds]);
  if (pending != NULL) exception_set(pending);
}
