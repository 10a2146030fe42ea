/* Arrays as Tensor objects that own their memory. */
#include "python/call/owned_tensor.h"

#include <stdlib.h>

#include "python/exception.h"
#include "abi/heap.h"
#include "python/interpreter.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "vm/object.h"

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

int own_tensor(struct call_frame *frame, PyObject *array, dso_any *value) {
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
