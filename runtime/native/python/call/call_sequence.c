/* CallSequence: running and timing its calls, and binding its slots. */
#include "python/call/call_sequence.h"

#include <time.h>

#include "python/call/callback.h"
#include "device/device_api.h"
#include "abi/dlpack.h"
#include "python/exception.h"
#include "abi/raised.h"
#include "python/tensor/tensor.h"

/* TVM, kAllocAlignment: TVM compiles its kernels for this alignment. Functions that packer wrapped
 * accept any array that is aligned to its elements. */
enum { TVM_ALIGNMENT = 64 };

/* ---- Running */

static int call_one(const struct call *call) {
  dso_any result = {.type_index = DSO_NONE};
  if (call->address(call->handle, call->args, call->count, &result) != 0) return -1;
  if (result.type_index >= DSO_OBJECT && result.v_ptr != NULL) object_release(result.v_ptr);
  return 0;
}

/* Make the calls before `stop`; return the index of the call that failed, or `stop`. */
static Py_ssize_t call_all(const struct call *calls, Py_ssize_t stop) {
  Py_ssize_t i = 0;
  while (i < stop && call_one(&calls[i]) == 0) i++;
  return i;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Work on a device may still run after the call returned. */
static int wait_for(const struct devices *devices) {
  for (int i = 0; i < devices->count; i++) {
    const struct device_api *api = device_api(devices->items[i].device_type);
    if (api == NULL || api->sync(devices->items[i].device_id) != 0) return -1;
  }
  return 0;
}

/* As call_all, but add the duration of each call to `seconds`. */
static Py_ssize_t time_all(const struct call *calls, Py_ssize_t stop, const struct devices *devices,
                           double *seconds) {
  double before = seconds_now();
  for (Py_ssize_t i = 0; i < stop; i++) {
    if (call_one(&calls[i]) != 0 || wait_for(devices) != 0) return i;
    double after = seconds_now();
    seconds[i] += after - before;
    before = after;
  }
  return stop;
}

/* The slots' memory belongs to the sequence: two runs at once would overwrite each other's data. */
static int begin(CallSequence *self) {
  if (!self->is_running) return self->is_running = 1;
  PyErr_SetString(PyExc_RuntimeError,
                  "the executor is running, in another thread or in a caller of this call; create "
                  "one executor per thread");
  return 0;
}

static PyObject *raise_from(const CallSequence *self, Py_ssize_t index, uint64_t raised) {
  const struct callee callee = {.name = PyList_GET_ITEM(self->names, index)};
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
  Py_ssize_t stop = parse_stop(self, args, count), done;
  if (stop < 0 || !begin(self)) return NULL;
  uint64_t raised = raised_count();
  Py_BEGIN_ALLOW_THREADS
  done = call_all(self->calls, stop);
  Py_END_ALLOW_THREADS
  self->is_running = 0;
  if (done < stop) return raise_from(self, done, raised);
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
  Py_ssize_t rounds = PyNumber_AsSsize_t(argument, PyExc_OverflowError), done = self->num_calls;
  if (rounds == -1 && PyErr_Occurred()) return NULL;
  if (rounds < 1)
    return PyErr_Format(PyExc_ValueError, "time: expected at least 1 round, found %zd", rounds);
  double *seconds = PyMem_Calloc((size_t)self->num_calls + 1, sizeof *seconds);
  if (seconds == NULL) return raise_no_memory();
  if (!begin(self)) {
    PyMem_Free(seconds);
    return NULL;
  }
  uint64_t raised = raised_count();
  Py_BEGIN_ALLOW_THREADS
  for (Py_ssize_t i = 0; i < rounds && done == self->num_calls; i++)
    done = time_all(self->calls, self->num_calls, &self->devices, seconds);
  Py_END_ALLOW_THREADS
  self->is_running = 0;
  PyObject *means = NULL;
  if (done < self->num_calls) raise_from(self, done, raised);
  else means = make_floats(seconds, self->num_calls, rounds);
  exception_discard();
  PyMem_Free(seconds);
  return means;
}

/* ---- Binding */

static int same_kind(const DLTensor *a, const DLTensor *b) {
  int same = a->ndim == b->ndim && a->dtype.code == b->dtype.code &&
             a->dtype.bits == b->dtype.bits && a->dtype.lanes == b->dtype.lanes &&
             a->device.device_type == b->device.device_type &&
             a->device.device_id == b->device.device_id;
  for (int i = 0; same && i < a->ndim; i++) same = a->shape[i] == b->shape[i];
  return same;
}

/* Return true if the calls may use the tensor's memory without a copy. */
static int is_compatible(const struct slot *slot, const Tensor *object, const DLTensor *tensor) {
  if (!object->is_compact || (object->is_readonly && slot->is_written)) return 0;
  if (!slot->needs_alignment || tensor->device.device_type != DLPACK_CPU) return 1;
  return object->nbytes == 0 || (uintptr_t)tensor->data % TVM_ALIGNMENT == 0;
}

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
  if (same_kind(&slot->tensor, *tensor)) return slot;
  PyErr_Format(PyExc_ValueError, "slot %zd, expected a tensor of the slot's shape, type and device",
               index);
  return NULL;
}

static PyObject *sequence_is_fit(CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  const DLTensor *tensor;
  const struct slot *slot = parse_slot(self, args, count, &tensor);
  if (slot == NULL) return NULL;
  return PyBool_FromLong(is_compatible(slot, (const Tensor *)args[1], tensor));
}

static PyObject *sequence_bind(CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  const DLTensor *tensor;
  struct slot *slot = parse_slot(self, args, count, &tensor);
  if (slot == NULL) return NULL;
  if (!is_compatible(slot, (const Tensor *)args[1], tensor))
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
    const dso_object *callback = self->calls[i].callback;
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
    if (self->calls[i].callback != NULL) object_release(self->calls[i].callback);
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
