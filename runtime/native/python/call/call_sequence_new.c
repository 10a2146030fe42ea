/* The constructor of CallSequence: each call gets an address, each argument points to its slot. */
#include "python/call/callback.h"
#include "python/call/call_sequence.h"
#include "abi/dlpack.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "python/tensor/tensor.h"
#include "device/tensor_object.h"

/* A Function of a library is called directly, unless it keeps the GIL. All other callables are
 * called through a callback object. */
static int bind_callable(CallSequence *self, struct call *call, PyObject *callable) {
  if (callable == Py_None) {
    call->address = calls_copy;
    return 0;
  }
  const struct callee *callee = function_check(callable) ? function_callee(callable) : NULL;
  if (callee != NULL && !callee->facts.gil_keep) {
    call->address = callee->address;
    call->handle = callee->handle;
    return PyList_Append(self->functions, callable);
  }
  dso_object *callback = callback_new(callable, NULL);
  if (callback == NULL) return -1;
  call->handle = self->callbacks[call - self->calls] = callback;
  call->address = ((dso_function_object *)(void *)callback)->safe_call;
  return 0;
}

static int bind_argument(CallSequence *self, struct call *call, PyObject *callable,
                         PyObject *index) {
  const struct param *param =
      function_check(callable) ? callee_param(function_callee(callable), call->count) : NULL;
  Py_ssize_t slot = PyNumber_AsSsize_t(index, PyExc_IndexError);
  if (slot == -1 && PyErr_Occurred()) return -1;
  if (slot < 0 || slot >= self->num_slots) {
    PyErr_Format(PyExc_IndexError, "slot %zd, expected 0 to %zd", slot, self->num_slots - 1);
    return -1;
  }
  self->slots[slot].is_written |= param != NULL && param->code[0] == '*';
  self->slots[slot].needs_alignment |= param == NULL && function_check(callable);
  call->args[call->count++] =
      (dso_any){.type_index = DSO_DLTENSOR_PTR, .v_ptr = &self->slots[slot].tensor};
  return 0;
}

/* Add one (name, callable or None, slots); stores its arguments in `args`. */
static int add_call(CallSequence *self, PyObject *item, dso_any *args) {
  PyObject *name, *callable, *slots;
  if (!PyArg_ParseTuple(item, "UOO!", &name, &callable, &PyTuple_Type, &slots)) return -1;
  if (callable == Py_None ? PyTuple_GET_SIZE(slots) != 2 : !PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "%U: expected a callable, or None and two slots", name);
    return -1;
  }
  if (PyList_Append(self->names, name) != 0) return -1;
  struct call *call = &self->calls[self->num_calls++];
  call->args = args;
  if (bind_callable(self, call, callable) != 0) return -1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(slots); i++)
    if (bind_argument(self, call, callable, PyTuple_GET_ITEM(slots, i)) != 0) return -1;
  return 0;
}

/* Return the total number of arguments of all calls; -1 with TypeError. */
static Py_ssize_t count_arguments(PyObject *calls) {
  Py_ssize_t count = 0;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); i++) {
    PyObject *item = PyList_GET_ITEM(calls, i);
    if (!PyTuple_Check(item) || PyTuple_GET_SIZE(item) != 3 ||
        !PyTuple_Check(PyTuple_GET_ITEM(item, 2))) {
      PyErr_Format(PyExc_TypeError, "call %zd, expected (name, callable, slots)", i);
      return -1;
    }
    count += PyTuple_GET_SIZE(PyTuple_GET_ITEM(item, 2));
  }
  return count;
}

static int add_calls(CallSequence *self, PyObject *calls) {
  Py_ssize_t count = count_arguments(calls), at = 0;
  if (count < 0) return -1;
  self->calls = PyMem_Calloc((size_t)PyList_GET_SIZE(calls) + 1, sizeof *self->calls);
  self->callbacks = PyMem_Calloc((size_t)PyList_GET_SIZE(calls) + 1, sizeof *self->callbacks);
  self->args = PyMem_Calloc((size_t)count + 1, sizeof *self->args);
  if (self->calls == NULL || self->callbacks == NULL || self->args == NULL) {
    raise_no_memory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); i++) {
    if (add_call(self, PyList_GET_ITEM(calls, i), self->args + at) != 0) return -1;
    at += self->calls[i].count;
  }
  return 0;
}

static int add_device(CallSequence *self, DLDevice device) {
  if (call_devices_add(&self->devices, device) == 0) return 0;
  PyErr_Format(PyExc_ValueError, "CallSequence: expected at most %d devices", CALLS_MAX_DEVICES);
  return -1;
}

static int add_slots(CallSequence *self, PyObject *tensors) {
  self->tensors = PyList_GetSlice(tensors, 0, PY_SSIZE_T_MAX);
  if (self->tensors == NULL) return -1;
  self->num_slots = PyList_GET_SIZE(self->tensors);
  self->slots = PyMem_Calloc((size_t)self->num_slots + 1, sizeof *self->slots);
  if (self->slots == NULL) {
    raise_no_memory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < self->num_slots; i++) {
    PyObject *tensor = PyList_GET_ITEM(self->tensors, i);
    if (!tensor_check(tensor)) {
      PyErr_Format(PyExc_TypeError, "slot %zd, expected a Tensor, found %s", i,
                   Py_TYPE(tensor)->tp_name);
      return -1;
    }
    const DLTensor *used = tensor_use(tensor);
    if (used == NULL || add_device(self, used->device) != 0) return -1;
    self->slots[i].tensor = *used;
  }
  return 0;
}

PyObject *call_sequence_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"tensors", "calls", NULL};
  PyObject *tensors, *calls;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!:CallSequence", names, &PyList_Type,
                                   &tensors, &PyList_Type, &calls))
    return NULL;
  CallSequence *self = (CallSequence *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->names = PyList_New(0);
  self->functions = PyList_New(0);
  if (self->names != NULL && self->functions != NULL && add_slots(self, tensors) == 0 &&
      add_calls(self, calls) == 0)
    return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}
