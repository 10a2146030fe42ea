/* CallSequence: running and timing its calls, and binding its slots. */
#include "python/call/call_sequence.h"

#include "python/call/callback.h"
#include "device/device_api.h"
#include "abi/dlpack.h"
#include "python/exception.h"
#include "abi/raised.h"
#include "python/tensor/tensor.h"

/* ---- Running */

/* The slots' memory belongs to the sequence: two runs at once would overwrite each other's data. */
static int begin(CallSequence *self) {
  if (!self->is_running) return self->is_running = 1;
  PyErr_SetString(PyExc_RuntimeError,
                  "the executor is running, in another thread or in a caller of this call; create "
                  "one executor per thread");
  return 0;
}

static PyObject *raise_from(const CallSequence *self, size_t index, uint64_t raised) {
  const struct callee callee = {.name = PyList_GET_ITEM(self->names, (Py_ssize_t)index)};
  return raise_call_error(&callee, -1, raised);
}

static Py_ssize_t parse_stop(const CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  Py_ssize_t stop = count > 0 ? PyNumber_AsSsize_t(args[0], PyExc_IndexError) : self->num_calls;
  if (stop == -1 && PyErr_Occurred()) return -1;
  if (stop >= 0 && stop <= self->num_calls && count <= 1) return stop;
  PyErr_Format(PyExc_IndexError, "run: expected one index of at most %zd", self->num_calls);
  return -1;
}

static PyObject *sequence_run(CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  Py_ssize_t stop = parse_stop(self, args, count);
  size_t done;
  if (stop < 0 || !begin(self)) return NULL;
  uint64_t raised = raised_count();
  Py_BEGIN_ALLOW_THREADS
  done = calls_run(self->calls, (size_t)stop);
  Py_END_ALLOW_THREADS
  self->is_running = 0;
  if (done < (size_t)stop) return raise_from(self, done, raised);
  exception_discard();
  Py_RETURN_NONE;
}

static PyObject *make_floats(const double *seconds, Py_ssize_t count, Py_ssize_t rounds) {
  PyObject *list = PyList_New(count);
  for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
    PyObject *mean = PyFloat_FromDouble(seconds[i] / (double)rounds);
    if (mean == NULL) Py_CLEAR(list);
    else PyList_SET_ITEM(list, i, mean);
  }
  return list;
}

static PyObject *sequence_time(CallSequence *self, PyObject *argument) {
  Py_ssize_t rounds = PyNumber_AsSsize_t(argument, PyExc_OverflowError);
  size_t count = (size_t)self->num_calls, done = count;
  if (rounds == -1 && PyErr_Occurred()) return NULL;
  if (rounds < 1)
    return PyErr_Format(PyExc_ValueError, "time: expected at least 1 round, found %zd", rounds);
  double *seconds = PyMem_Calloc(count + 1, sizeof *seconds);
  if (seconds == NULL) return raise_no_memory();
  if (!begin(self)) {
    PyMem_Free(seconds);
    return NULL;
  }
  uint64_t raised = raised_count();
  Py_BEGIN_ALLOW_THREADS
  for (Py_ssize_t i = 0; i < rounds && done == count; i++)
    done = calls_time(self->calls, count, &self->devices, seconds);
  Py_END_ALLOW_THREADS
  self->is_running = 0;
  PyObject *means = NULL;
  if (done < count) raise_from(self, done, raised);
  else means = make_floats(seconds, self->num_calls, rounds);
  exception_discard();
  PyMem_Free(seconds);
  return means;
}

/* ---- Binding */

/* Parse a method's arguments, a slot and a tensor of its kind; NULL with an exception set. */
static struct slot *parse_slot(const CallSequence *self, PyObject *const *args, Py_ssize_t count,
                               const DLTensor **tensor) {
  Py_ssize_t index = count == 2 ? PyNumber_AsSsize_t(args[0], PyExc_IndexError) : -1;
  if (PyErr_Occurred()) return NULL;
  if (index < 0 || index >= self->num_slots || !tensor_check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "expected a slot and a Tensor");
    return NULL;
  }
  struct slot *slot = &self->slots[index];
  *tensor = tensor_use(args[1]);
  if (*tensor == NULL) return NULL;
  if (slot_is_kind(slot, *tensor)) return slot;
  PyErr_Format(PyExc_ValueError, "slot %zd, expected a tensor of the slot's shape, type and device",
               index);
  return NULL;
}

static PyObject *sequence_is_fit(CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  const DLTensor *tensor;
  const struct slot *slot = parse_slot(self, args, count, &tensor);
  if (slot == NULL) return NULL;
  return PyBool_FromLong(slot_is_fit(slot, tensor, ((const Tensor *)args[1])->is_readonly));
}

static PyObject *sequence_bind(CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  const DLTensor *tensor;
  struct slot *slot = parse_slot(self, args, count, &tensor);
  if (slot == NULL) return NULL;
  if (!slot_is_fit(slot, tensor, ((const Tensor *)args[1])->is_readonly))
    return PyErr_Format(PyExc_ValueError, "bind: expected a tensor that is_fit accepts");
  if (!begin(self)) return NULL;
  self->is_running = 0;
  slot->tensor = *tensor;
  if (PyList_SetItem(self->tensors, slot - self->slots, Py_NewRef(args[1])) != 0) return NULL;
  Py_RETURN_NONE;
}

/* ---- The object */

/* If other code has kept the object, it is alive in any case, and its callable is not visited. */
static int is_sole_reference(const dso_object *callback) {
  uint64_t count = __atomic_load_n(&callback->combined_ref_count, __ATOMIC_RELAXED);
  return (uint32_t)count == 1;
}

static int sequence_traverse(CallSequence *self, visitproc visit, void *arg) {
  for (Py_ssize_t i = 0; i < self->num_calls; i++) {
    const dso_object *callback = self->callbacks[i];
    int status =
        callback && is_sole_reference(callback) ? callback_traverse(callback, visit, arg) : 0;
    if (status != 0) return status;
  }
  Py_VISIT(self->functions);
  Py_VISIT(self->tensors);
  return 0;
}

static int sequence_clear(CallSequence *self) {
  Py_ssize_t count = self->num_calls;
  self->num_calls = self->num_slots = 0; /* the object may still be used after tp_clear */
  for (Py_ssize_t i = 0; i < count; i++)
    if (self->callbacks[i] != NULL) object_release(self->callbacks[i]);
  Py_CLEAR(self->functions);
  Py_CLEAR(self->tensors);
  return 0;
}

static void sequence_dealloc(CallSequence *self) {
  PyObject_GC_UnTrack(self);
  sequence_clear(self);
  Py_XDECREF(self->names);
  PyMem_Free(self->slots);
  PyMem_Free(self->calls);
  PyMem_Free((void *)self->callbacks);
  PyMem_Free(self->args);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyMethodDef sequence_methods[] = {
    {"run", (PyCFunction)(void (*)(void))sequence_run, METH_FASTCALL,
     "run($self, stop=..., /)\n--\n\nMake all calls in order, or only those before index `stop`."},
    {"time", (PyCFunction)sequence_time, METH_O,
     "time($self, rounds, /)\n--\n\n"
     "Make all calls `rounds` times; return the mean seconds of each call."},
    {"is_fit", (PyCFunction)(void (*)(void))sequence_is_fit, METH_FASTCALL,
     "is_fit($self, slot, tensor, /)\n--\n\nReturn True if the calls may use this tensor."},
    {"bind", (PyCFunction)(void (*)(void))sequence_bind, METH_FASTCALL,
     "bind($self, slot, tensor, /)\n--\n\n"
     "Bind a slot to this tensor; raise ValueError unless `is_fit` accepts it."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject CallSequence_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.CallSequence",
    .tp_doc = "A sequence of calls, bound once to tensors; it runs without the GIL.",
    .tp_basicsize = sizeof(CallSequence),
    .tp_new = call_sequence_new,
    .tp_traverse = (traverseproc)sequence_traverse,
    .tp_clear = (inquiry)sequence_clear,
    .tp_dealloc = (destructor)sequence_dealloc,
    .tp_methods = sequence_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};
