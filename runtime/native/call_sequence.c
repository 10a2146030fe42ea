#include "call_sequence.h"

#include <time.h>

#include "callback.h"
#include "device_api.h"
#include "dlpack.h"
#include "exception.h"
#include "function.h"
#include "raised.h"
#include "tensor.h"
#include "tensor_object.h"

/* TVM, kAllocAlignment: its kernels are compiled for memory that is aligned so. Functions that
 * packer wrapped take any array that is aligned to its elements. */
enum { TVM_ALIGNMENT = 64 };

struct call {
  dso_safe_call address;
  void *handle;
  dso_object *callback; /* a reference: the object that calls what is no plain Function */
  dso_any *args;        /* each points to a slot's tensor */
  int32_t count;
};

/* Where the arguments' tensors are: the DLTensor is a copy of the bound object's. */
struct slot {
  DLTensor tensor;
  int is_written; /* some function says so: "*f32" */
  int is_tvms;    /* some function is not declared, and may count on TVM's alignment */
};

enum { MAX_DEVICES = 8 };

struct devices {
  int count;
  DLDevice items[MAX_DEVICES];
};

typedef struct {
  PyObject_HEAD
  PyObject *names;     /* list of str, one per call */
  PyObject *functions; /* list of the Functions that are called as they are; keeps them */
  PyObject *tensors;   /* list of what is bound, one per slot */
  struct slot *slots;
  struct call *calls;
  dso_any *args; /* of all calls, one behind the other */
  Py_ssize_t num_slots, num_calls;
  struct devices devices; /* beside the CPU, which needs no waiting */
  int is_running;
} CallSequence;

/* TVM's __copy, between devices: arguments from, to. */
static int copy(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle, (void)count, (void)result;
  return tensor_copy(args[1].v_ptr, args[0].v_ptr);
}

/* ---- Making one */

/* A function of a library is called as it is; all else through an object that calls it. */
static int bind_callable(CallSequence *self, struct call *call, PyObject *callable) {
  if (callable == Py_None) {
    call->address = copy;
    return 0;
  }
  const struct target *target = function_check(callable) ? function_target(callable) : NULL;
  if (target != NULL && !target->facts.gil_keep) {
    call->address = target->address;
    call->handle = target->handle;
    return PyList_Append(self->functions, callable);
  }
  call->handle = call->callback = callback_new(callable, NULL);
  if (call->callback == NULL) return -1;
  call->address = ((dso_function_object *)(void *)call->callback)->safe_call;
  return 0;
}

static int bind_argument(CallSequence *self, struct call *call, PyObject *callable,
                         PyObject *index) {
  const struct param *param =
      function_check(callable) ? target_param(function_target(callable), call->count) : NULL;
  Py_ssize_t slot = PyNumber_AsSsize_t(index, PyExc_IndexError);
  if (slot == -1 && PyErr_Occurred()) return -1;
  if (slot < 0 || slot >= self->num_slots) {
    PyErr_Format(PyExc_IndexError, "slot %zd, expected 0 to %zd", slot, self->num_slots - 1);
    return -1;
  }
  self->slots[slot].is_written |= param != NULL && param->code[0] == '*';
  self->slots[slot].is_tvms |= param == NULL && function_check(callable);
  call->args[call->count++] =
      (dso_any){.type_index = DSO_DLTENSOR_PTR, .v_ptr = &self->slots[slot].tensor};
  return 0;
}

/* One (name, callable or None, slots); the arguments go to `args`. */
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

/* How many arguments all calls have together; -1 with TypeError. */
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
  self->args = PyMem_Calloc((size_t)count + 1, sizeof *self->args);
  if (self->calls == NULL || self->args == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(calls); i++) {
    if (add_call(self, PyList_GET_ITEM(calls, i), self->args + at) != 0) return -1;
    at += self->calls[i].count;
  }
  return 0;
}

static int add_device(struct devices *devices, DLDevice device) {
  if (device.device_type == DLPACK_CPU) return 0;
  for (int i = 0; i < devices->count; i++)
    if (devices->items[i].device_type == device.device_type &&
        devices->items[i].device_id == device.device_id)
      return 0;
  if (devices->count < MAX_DEVICES) {
    devices->items[devices->count++] = device;
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "expected at most %d devices", MAX_DEVICES);
  return -1;
}

static int add_slots(CallSequence *self, PyObject *tensors) {
  self->tensors = PyList_GetSlice(tensors, 0, PY_SSIZE_T_MAX);
  if (self->tensors == NULL) return -1;
  self->num_slots = PyList_GET_SIZE(self->tensors);
  self->slots = PyMem_Calloc((size_t)self->num_slots + 1, sizeof *self->slots);
  if (self->slots == NULL) {
    PyErr_NoMemory();
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
    if (used == NULL || add_device(&self->devices, used->device) != 0) return -1;
    self->slots[i].tensor = *used;
  }
  return 0;
}

static PyObject *sequence_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
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

/* ---- Running */

static int call_one(const struct call *call) {
  dso_any result = {.type_index = DSO_NONE};
  if (call->address(call->handle, call->args, call->count, &result) != 0) return -1;
  if (result.type_index >= DSO_OBJECT && result.v_ptr != NULL) object_release(result.v_ptr);
  return 0;
}

/* The calls up to `stop`; where one breaks off, its index. */
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

/* Calls of a device are over when it says so. */
static int wait_for(const struct devices *devices) {
  for (int i = 0; i < devices->count; i++) {
    const struct device_api *api = device_api(devices->items[i].device_type);
    if (api == NULL || api->sync(devices->items[i].device_id) != 0) return -1;
  }
  return 0;
}

/* The same, adding what each call takes to `seconds`. */
static Py_ssize_t time_all(const struct call *calls, Py_ssize_t stop,
                           const struct devices *devices, double *seconds) {
  double before = seconds_now();
  for (Py_ssize_t i = 0; i < stop; i++) {
    if (call_one(&calls[i]) != 0 || wait_for(devices) != 0) return i;
    double after = seconds_now();
    seconds[i] += after - before;
    before = after;
  }
  return stop;
}

/* Memory is the sequence's own: two runs at once would write into each other's. */
static int begin(CallSequence *self) {
  if (!self->is_running) return self->is_running = 1;
  PyErr_SetString(PyExc_RuntimeError,
                  "the executor is running, in another thread or further up in this one; make one "
                  "executor for each thread");
  return 0;
}

static PyObject *raise_from(const CallSequence *self, Py_ssize_t index, uint64_t raised) {
  const struct target target = {.name = PyList_GET_ITEM(self->names, index)};
  return raise_call_error(&target, -1, raised);
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
  exception_forget();
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
  if (rounds < 1) return PyErr_Format(PyExc_ValueError, "expected at least one round");
  double *seconds = PyMem_Calloc((size_t)self->num_calls + 1, sizeof *seconds);
  if (seconds == NULL) return PyErr_NoMemory();
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
  exception_forget();
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

/* Whether a function of the sequence may be given this memory as it is. */
static int is_fit(const struct slot *slot, const Tensor *object, const DLTensor *tensor) {
  if (!object->is_compact || (object->is_readonly && slot->is_written)) return 0;
  if (!slot->is_tvms || tensor->device.device_type != DLPACK_CPU) return 1;
  return object->nbytes == 0 || (uintptr_t)tensor->data % TVM_ALIGNMENT == 0;
}

/* The slot and tensor of a method's arguments; NULL with an exception set. */
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
  PyErr_Format(PyExc_ValueError, "slot %zd, expected a tensor of its shape, type and device",
               index);
  return NULL;
}

static PyObject *sequence_is_fit(CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  const DLTensor *tensor;
  const struct slot *slot = parse_slot(self, args, count, &tensor);
  if (slot == NULL) return NULL;
  return PyBool_FromLong(is_fit(slot, (const Tensor *)args[1], tensor));
}

static PyObject *sequence_bind(CallSequence *self, PyObject *const *args, Py_ssize_t count) {
  const DLTensor *tensor;
  struct slot *slot = parse_slot(self, args, count, &tensor);
  if (slot == NULL) return NULL;
  if (!is_fit(slot, (const Tensor *)args[1], tensor))
    return PyErr_Format(PyExc_ValueError, "bind: expected memory that is_fit accepts");
  if (!begin(self)) return NULL;
  self->is_running = 0;
  slot->tensor = *tensor;
  if (PyList_SetItem(self->tensors, slot - self->slots, Py_NewRef(args[1])) != 0) return NULL;
  Py_RETURN_NONE;
}

/* ---- The object */

/* What others have kept is alive anyway: then this reference tells nothing. */
static int is_only_ours(const dso_object *callback) {
  uint64_t count = __atomic_load_n(&callback->combined_ref_count, __ATOMIC_RELAXED);
  return (uint32_t)count == 1;
}

static int sequence_traverse(CallSequence *self, visitproc visit, void *arg) {
  for (Py_ssize_t i = 0; i < self->num_calls; i++) {
    const dso_object *callback = self->calls[i].callback;
    int status = callback && is_only_ours(callback) ? callback_traverse(callback, visit, arg) : 0;
    if (status != 0) return status;
  }
  Py_VISIT(self->functions);
  Py_VISIT(self->tensors);
  return 0;
}

static int sequence_clear(CallSequence *self) {
  Py_ssize_t count = self->num_calls;
  self->num_calls = self->num_slots = 0; /* it can still be called */
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
     "run($self, stop=..., /)\n--\n\nMake the calls in order, or those before `stop`."},
    {"time", (PyCFunction)sequence_time, METH_O,
     "time($self, rounds, /)\n--\n\nThe mean seconds of each call."},
    {"is_fit", (PyCFunction)(void (*)(void))sequence_is_fit, METH_FASTCALL,
     "is_fit($self, slot, tensor, /)\n--\n\nWhether a slot may be this tensor."},
    {"bind", (PyCFunction)(void (*)(void))sequence_bind, METH_FASTCALL,
     "bind($self, slot, tensor, /)\n--\n\nLet a slot be this tensor, which is fit for it."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject CallSequence_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.CallSequence",
    .tp_doc = "Calls bound once, over tensors that are arguments of theirs.",
    .tp_basicsize = sizeof(CallSequence),
    .tp_new = sequence_new,
    .tp_traverse = (traverseproc)sequence_traverse,
    .tp_clear = (inquiry)sequence_clear,
    .tp_dealloc = (destructor)sequence_dealloc,
    .tp_methods = sequence_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};
