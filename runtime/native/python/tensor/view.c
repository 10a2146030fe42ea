/* A Tensor over another Tensor's memory, in another shape. */
#include "python/tensor/view.h"

#include "python/exception.h"
#include "python/interpreter.h"
#include "abi/raised.h"
#include "python/tensor/tensor.h"
#include "device/tensor_object.h"

/* Any thread may drop the last reference. */
static void drop_owner(void *owner) {
  if (!interpreter_runs()) return; /* after the interpreter's end its objects cannot be released */
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF((PyObject *)owner);
  PyGILState_Release(gil);
}

static PyObject *make_view(PyObject *owner, const DLTensor *memory, const Tensor *layout) {
  DLTensor view = layout->tensor;
  view.data = memory->data;
  view.device = memory->device;
  view.byte_offset = memory->byte_offset;
  uint64_t count = raised_count();
  dso_object *object = tensor_object_adopt(&view, owner, drop_owner);
  if (object == NULL) return raise_native_error("tensor_view", count);
  Py_INCREF(owner);
  if (((const Tensor *)owner)->is_readonly) tensor_object_mark(object, TENSOR_READ_ONLY);
  PyObject *made = tensor_from_object(object, NULL);
  object_release(object);
  return made;
}

PyObject *tensor_view(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *owner, *shape, *view = NULL;
  int code, bits, lanes;
  Tensor layout = {0}; /* not a Python object, only the operand of the checks in layout.c */
  if (!PyArg_ParseTuple(args, "O!O!(iii):tensor_view", &TensorBase_Type, &owner, &PyTuple_Type,
                        &shape, &code, &bits, &lanes))
    return NULL;
  const DLTensor *memory = tensor_use(owner);
  layout.shape = shape;
  if (memory == NULL || tensor_parse_dtype(&layout, code, bits, lanes) != 0) return NULL;
  if (tensor_lay_out(&layout) == 0) {
    if (((const Tensor *)owner)->is_compact && layout.nbytes <= ((const Tensor *)owner)->nbytes)
      view = make_view(owner, memory, &layout);
    else
      PyErr_Format(PyExc_ValueError, "tensor_view: expected %zd bytes of compact memory, found %R",
                   layout.nbytes, owner);
  }
  PyMem_Free(layout.tensor.shape);
  return view;
}
