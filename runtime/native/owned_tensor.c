#include "owned_tensor.h"

#include "exception.h"
#include "interpreter.h"
#include "object.h"
#include "strides.h"

struct owned_tensor {
  dso_tensor_object object;
  PyObject *array;
  struct hold holds[1];
  int num_holds;
  int64_t dims[]; /* shape, strides */
};

static void drop_array(struct owned_tensor *self) {
  if (!interpreter_runs()) return; /* the interpreter's objects end with it */
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *pending = exception_take();
  struct frame frame = {.holds = self->holds, .num_holds = self->num_holds};
  frame_release(&frame);
  Py_DECREF(self->array);
  if (pending != NULL) exception_set(pending);
  PyGILState_Release(gil);
}

static void delete_tensor(void *self, int flags) {
  if (flags & DSO_DELETE_STRONG) drop_array(self);
  object_free(self, flags);
}

static void copy_layout(struct owned_tensor *self, const DLTensor *tensor) {
  DLTensor *own = &self->object.tensor;
  *own = *tensor;
  own->shape = self->dims;
  own->strides = self->dims + tensor->ndim;
  for (int i = 0; i < tensor->ndim; i++) own->shape[i] = tensor->shape[i];
  if (tensor->strides == NULL) strides_set(own);
  else
    for (int i = 0; i < tensor->ndim; i++) own->strides[i] = tensor->strides[i];
}

int own_tensor(struct frame *frame, PyObject *array, dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  size_t dims_size = 2 * (size_t)tensor->ndim * sizeof(int64_t);
  struct owned_tensor *self =
      object_new(sizeof *self + dims_size, DSO_TENSOR, delete_tensor);
  if (self == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  copy_layout(self, tensor);
  self->array = Py_NewRef(array);
  self->num_holds = frame->num_holds;
  if (frame->num_holds > 0) self->holds[0] = frame->holds[0];
  frame->num_holds = 0; /* it is this object's from here on */
  *value = (dso_any){.type_index = DSO_TENSOR, .v_ptr = self};
  return 0;
}
