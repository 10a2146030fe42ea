/* Values that own their data: results of callbacks, and items of arrays. */
#include "python/call/convert.h"

#include <stdlib.h>
#include <string.h>

#include "python/exception.h"
#include "abi/heap.h"
#include "python/interpreter.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "vm/object.h"

/* ---- Arrays become Tensor objects that own their memory */

/* References that keep the memory of an array. */
struct keeper {
  PyObject *array;
  struct hold holds[1];
  int num_holds;
};

static void drop_keeper(void *managed) {
  struct keeper *self = managed;
  if (interpreter_runs()) { /* after the interpreter's end its objects cannot be released */
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *pending = exception_take();
    struct call_frame frame = {.holds = self->holds, .num_holds = self->num_holds};
    frame_release(&frame);
    Py_DECREF(self->array);
    if (pending != NULL) exception_set(pending);
    PyGILState_Release(gil);
  }
  free(self);
}

/* Move the frame's hold to a new keeper. */
static struct keeper *keep(struct call_frame *frame, PyObject *array) {
  struct keeper *self = heap_new(sizeof *self);
  if (self == NULL) return raise_no_memory();
  self->array = Py_NewRef(array);
  self->num_holds = frame->num_holds;
  if (frame->num_holds > 0) self->holds[0] = frame->holds[0];
  frame->num_holds = 0;
  return self;
}

/* Replace a frame's only value, the tensor of `array`, by a Tensor object that owns the array and
 * the frame's hold: 0, or -1 with MemoryError. Any thread may release the object. */
static int own_tensor(struct call_frame *frame, PyObject *array, dso_any *value) {
  unsigned flags = tensor_value_is_readonly(value) ? TENSOR_READ_ONLY : 0;
  DLTensor tensor = *dso_tensor_of(value); /* its shape belongs to the hold or to the array */
  struct keeper *keeper = keep(frame, array);
  if (keeper == NULL) return -1;
  uint64_t count = raised_count();
  dso_object *object = tensor_object_adopt(&tensor, keeper, drop_keeper);
  if (object == NULL) {
    (void)raise_native_error("a tensor", count);
    drop_keeper(keeper);
    return -1;
  }
  tensor_object_mark(object, flags);
  *value = any_of_object(object);
  return 0;
}

/* ---- Other values */

static int own_string(dso_any *value, int is_str, const char *data, size_t nbytes) {
  if (object_make_string(value, is_str, data, nbytes) == 0) return 0;
  return as_status(raise_no_memory());
}

/* Make a converted argument, which borrows, own its data. */
static int own_value(struct call_frame *frame, PyObject *object, dso_any *value) {
  const dso_byte_array *bytes = value->v_ptr;
  switch (value->type_index) {
    case DSO_RAW_STR: return own_string(value, 1, value->v_c_str, strlen(value->v_c_str));
    case DSO_BYTE_ARRAY_PTR: return own_string(value, 0, bytes->data, (size_t)bytes->size);
    case DSO_ARRAY:
    case DSO_FUNCTION:
    case DSO_MODULE: object_retain(value->v_ptr); return 0;
    case DSO_DLTENSOR_PTR:
    case DSO_TENSOR: return own_tensor(frame, object, value);
    default: return 0;
  }
}

int convert_item(PyObject *callable, PyObject *object, PyObject **arrays, int takes_any,
                 dso_any *value) {
  static const struct callee no_callee;
  struct hold hold;
  struct call_frame frame = {.callee = &no_callee,
                             .function = callable,
                             .args = value,
                             .holds = &hold,
                             .is_result = 1,
                             .arrays = arrays,
                             .takes_any = takes_any};
  int status = convert_arguments(&frame, &object, 1);
  if (status == 0) status = own_value(&frame, object, value);
  if (status != 0) *value = (dso_any){.type_index = DSO_NONE};
  if (frame.needs_release) frame_release(&frame);
  return status;
}

int convert_owned(PyObject *callable, PyObject *object, dso_any *value) {
  return convert_item(callable, object, NULL, 0, value);
}
