/* Graph: a checked graph, which has an executor from `bind` on.
 *
 * Operators are objects of callback.c: functions of a library are called without Python. They
 * belong to the executor; the collector visits their callables through it, since an operator in
 * Python may hold the executor. One file: every function reads the object's fields, which no
 * other file knows. */
#define _GNU_SOURCE
#include "python/graph.h"

#include <string.h>
#include <time.h>

#include "abi/raised.h"
#include "device/device_api.h"
#include "device/tensor_object.h"
#include "python/call/callback.h"
#include "python/call/convert.h"
#include "python/call/function.h"
#include "python/container.h"
#include "python/device.h"
#include "python/exception.h"
#include "python/name_bytes.h"
#include "python/tensor/tensor.h"
#include "types/graph/graph_factory.h"
#include "vm/object.h"

enum { MOST_DEVICES = 64, MOST_ARGS = 2 };

typedef struct {
  PyObject_HEAD
  PyObject *text;                  /* bytes: graph JSON; or NULL */
  struct graph graph;              /* empty from `bind` on */
  struct graph_executor *executor; /* owned; NULL before `bind` */
} Graph;

static const struct graph *graph_of(const Graph *self) {
  return self->executor != NULL ? &self->executor->graph : &self->graph;
}

/* ---- Reading */

static int read_json(Graph *self, PyObject *text, const char *where) {
  self->text = name_bytes(text);
  if (self->text == NULL) return -1;
  struct span span = {PyBytes_AS_STRING(self->text), (size_t)PyBytes_GET_SIZE(self->text)};
  return graph_parse(&self->graph, span, where);
}

static int read_metadata(Graph *self, PyObject *function) {
  dso_object *object = callback_new(function, NULL);
  if (object == NULL) return -1;
  int status = aot_graph_read(&self->graph, (dso_function *)object);
  object_release(object);
  return status;
}

static PyObject *graph_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"source", "where", NULL};
  PyObject *source;
  const char *where = "graph";
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|s:Graph", names, &source, &where))
    return NULL;
  Graph *self = (Graph *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  uint64_t raised = raised_count();
  int status =
      PyUnicode_Check(source) ? read_json(self, source, where) : read_metadata(self, source);
  if (status == 0) return (PyObject *)self;
  Py_DECREF(self);
  return raise_native_error(where, raised);
}

/* ---- Names */

static PyObject *text_of_span(struct span text) {
  return PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "surrogateescape");
}

static PyObject *get_inputs(Graph *self, void *Py_UNUSED(closure)) {
  const struct graph *graph = graph_of(self);
  PyObject *names = PyTuple_New((Py_ssize_t)graph->num_inputs);
  for (size_t i = 0; names != NULL && i < graph->num_inputs; i++)
    tuple_fill(&names, i, text_of_span(graph_input_node(graph, i)->name));
  return names;
}

static int is_own(const struct graph_node *node) {
  return node->function.data == NULL || graph_calls(node, GRAPH_NOP) ||
         graph_calls(node, GRAPH_COPY);
}

static PyObject *get_functions(Graph *self, void *Py_UNUSED(closure)) {
  const struct graph *graph = graph_of(self);
  PyObject *names = PyFrozenSet_New(NULL);
  for (size_t i = 0; names != NULL && i < graph->num_nodes; i++) {
    if (is_own(&graph->nodes[i])) continue;
    PyObject *name = text_of_span(graph->nodes[i].function);
    if (name == NULL || PySet_Add(names, name) != 0) Py_CLEAR(names);
    Py_XDECREF(name);
  }
  return names;
}

static PyObject *get_devices(Graph *self, void *Py_UNUSED(closure)) {
  PyObject *list = PyList_New(0);
  int count = self->executor != NULL ? self->executor->binding.devices.count : 0;
  for (int i = 0; list != NULL && i < count; i++)
    list_add(&list, device_new(self->executor->binding.devices.items[i]));
  return list;
}

/* ---- Parameters: a dict of names and Tensors */

struct params {
  struct named_arrays arrays; /* each name points into `names` */
  PyObject *names;            /* list of bytes */
};

static void params_clear(struct params *self) {
  for (size_t i = 0; i < self->arrays.count; i++)
    if (self->arrays.items[i].tensor != NULL) object_release(&self->arrays.items[i].tensor->object);
  PyMem_Free(self->arrays.items);
  Py_XDECREF(self->names);
}

static int add_param(struct params *self, PyObject *name, PyObject *array) {
  dso_any value;
  PyObject *bytes = PyUnicode_Check(name) ? name_bytes(name) : NULL;
  if (bytes == NULL || PyList_Append(self->names, bytes) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "params: expected names of type str");
    Py_XDECREF(bytes);
    return -1;
  }
  struct named_array *item = &self->arrays.items[self->arrays.count];
  *item = (struct named_array){.name = {PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)}};
  Py_DECREF(bytes); /* the list keeps it */
  if (!tensor_check(array) || convert_owned(name, array, &value) != 0) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "params: expected Tensors");
    return -1;
  }
  item->tensor = value.v_ptr;
  self->arrays.count++;
  return 0;
}

static int params_take(struct params *self, PyObject *dict) {
  PyObject *name, *array;
  Py_ssize_t at = 0;
  self->names = PyList_New(0);
  self->arrays.items = PyMem_Calloc((size_t)PyDict_Size(dict) + 1, sizeof *self->arrays.items);
  if (self->arrays.items == NULL) (void)raise_no_memory();
  int status = self->names != NULL && self->arrays.items != NULL ? 0 : -1;
  while (status == 0 && PyDict_Next(dict, &at, &name, &array))
    status = add_param(self, name, array);
  return status;
}

/* Check a dict of parameters; set them if the graph is bound. */
static PyObject *graph_set_params(Graph *self, PyObject *args) {
  PyObject *dict;
  const char *where;
  struct params params = {.names = NULL};
  if (!PyArg_ParseTuple(args, "O!s:set_params", &PyDict_Type, &dict, &where)) return NULL;
  uint64_t raised = raised_count();
  int status = params_take(&params, dict);
  if (status == 0)
    status = self->executor != NULL ? graph_set_arrays(self->executor, where, &params.arrays)
                                    : graph_check_params(&self->graph, where, &params.arrays);
  params_clear(&params);
  if (status != 0) return raise_native_error("set_params", raised);
  Py_RETURN_NONE;
}

/* ---- Binding */

/* `declared` of an operator in Python: it gets views of the arrays, in any memory. */
static const struct callee in_python;

/* The object of an operator. A library's function without a handle is called itself. */
static int take_callable(PyObject *callable, struct operator *found) {
  const struct callee *callee = function_check(callable) ? function_callee(callable) : &in_python;
  found->function = (dso_function_object *)(void *)callback_new(callable, NULL);
  found->declared = callee;
  if (callee->handle == NULL && !callee->facts.gil_keep) found->direct = callee->address;
  return found->function != NULL ? 1 : -1;
}

static int find(void *context, const char *name, struct operator *found) {
  PyObject *text = text_of_span((struct span){name, strlen(name)});
  PyObject *callable = text ? PyObject_CallOneArg(context, text) : NULL;
  Py_XDECREF(text);
  if (callable == NULL) return -1;
  int status = callable != Py_None ? take_callable(callable, found) : 0;
  Py_DECREF(callable);
  return status;
}

static enum access access_of(const void *declared, int32_t index) {
  const struct param *param = callee_param(declared, index);
  if (param != NULL) return param->code[0] == '*' ? ACCESS_WRITE : ACCESS_READ;
  return declared == &in_python ? ACCESS_READ : ACCESS_UNKNOWN;
}

static int take_devices(PyObject *list, DLDevice *devices) {
  Py_ssize_t count = PyList_GET_SIZE(list);
  if (count > MOST_DEVICES)
    return raise_format(PyExc_ValueError, "expected at most %d devices, found %zd", MOST_DEVICES,
                        count);
  for (Py_ssize_t i = 0; i < count; i++)
    if (device_from_object(PyList_GET_ITEM(list, i), &devices[i]) != 0) return -1;
  return (int)count;
}

static PyObject *graph_bind(Graph *self, PyObject *args) {
  PyObject *callable, *list;
  DLDevice devices[MOST_DEVICES];
  if (!PyArg_ParseTuple(args, "OO!:bind", &callable, &PyList_Type, &list)) return NULL;
  int count = take_devices(list, devices);
  if (count < 0) return NULL;
  if (self->executor != NULL) return PyErr_Format(PyExc_RuntimeError, "bind: the graph is bound");
  const struct operator_finder finder = {.context = callable, .find = find, .access = access_of};
  uint64_t raised = raised_count();
  self->executor = graph_executor_new(&self->graph, &finder, NULL, devices, count);
  if (self->executor == NULL) return raise_native_error("bind", raised);
  exception_discard();
  Py_RETURN_NONE;
}

/* ---- Calls of the executor's functions */

static int take_text(PyObject *object, dso_any *value) {
  PyObject *bytes = name_bytes(object);
  if (bytes == NULL) return -1;
  int status =
      object_make_string(value, 1, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
  Py_DECREF(bytes);
  if (status != 0) (void)raise_no_memory();
  return status != 0 ? -1 : 0;
}

/* An int, a str or a Tensor, as a value that the caller owns. */
static int take_argument(PyObject *object, dso_any *value) {
  if (PyUnicode_Check(object)) return take_text(object, value);
  if (tensor_check(object)) return convert_owned(object, object, value);
  *value = (dso_any){.type_index = DSO_INT, .v_int64 = PyLong_AsLongLong(object)};
  return value->v_int64 == -1 && PyErr_Occurred() ? -1 : 0;
}

static void release_values(dso_any *values, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (values[i].type_index >= DSO_OBJECT) object_release(values[i].v_ptr);
}

/* Operators run without the GIL; the other functions change what a run reads, so they keep it. */
static int invoke(Graph *self, dso_safe_call call, const char *name, const dso_any *args,
                  int32_t count, dso_any *result) {
  int status, is_run = strcmp(name, "run") == 0 || strcmp(name, "debug_get_output") == 0;
  if (!is_run) return call(self->executor, args, count, result);
  Py_BEGIN_ALLOW_THREADS
  status = call(self->executor, args, count, result);
  Py_END_ALLOW_THREADS
  return status;
}

static int check_bound(const Graph *self) {
  if (self->executor != NULL) return 0;
  return raise_format(PyExc_RuntimeError, "the graph is not bound");
}

static PyObject *graph_call(Graph *self, PyObject *const *args, Py_ssize_t count) {
  dso_any values[MOST_ARGS], result = {.type_index = DSO_NONE};
  const char *name = count > 0 ? PyUnicode_AsUTF8(args[0]) : NULL;
  dso_safe_call call = name != NULL ? graph_function_find(name) : NULL;
  if (call == NULL || count > MOST_ARGS + 1)
    return PyErr_Format(PyExc_TypeError, "call: expected a function's name and its arguments");
  if (check_bound(self) != 0) return NULL;
  int32_t num_args = 0;
  while (num_args < count - 1 && take_argument(args[num_args + 1], &values[num_args]) == 0)
    num_args++;
  PyObject *made = NULL;
  if (num_args == count - 1) {
    const struct source source = {.callable = (PyObject *)self, .is_result = 1};
    uint64_t raised = raised_count();
    int status = invoke(self, call, name, values, num_args, &result);
    made = status == 0 ? convert_value(&source, &result) : raise_native_error(name, raised);
    if (status == 0) exception_discard();
    if (result.type_index >= DSO_OBJECT) object_release(result.v_ptr);
  }
  release_values(values, num_args);
  return made;
}

/* ---- Timing */

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Work on a device may still run after the call returned. */
static int wait_for(const struct call_devices *devices) {
  for (int i = 0; i < devices->count; i++) {
    const struct device_api *api = device_api(devices->items[i].device_type);
    if (api == NULL || api->sync(devices->items[i].device_id) != 0) return -1;
  }
  return 0;
}

/* Make all calls, and add the duration of each, with its work on devices, to `seconds`. */
static int time_calls(struct binding *binding, double *seconds) {
  double before = seconds_now();
  for (size_t i = 0; i < binding->num_calls; i++) {
    if (binding_run(binding, i, i + 1) != 0 || wait_for(&binding->devices) != 0) return -1;
    double after = seconds_now();
    seconds[i] += after - before;
    before = after;
  }
  return 0;
}

static PyObject *times_list(const struct binding *binding, const double *seconds, int64_t rounds) {
  PyObject *list = PyList_New((Py_ssize_t)binding->num_calls);
  for (size_t i = 0; list != NULL && i < binding->num_calls; i++) {
    const struct graph_node *node = binding->callers[i];
    list_fill(&list, i,
              Py_BuildValue("(NNd)", text_of_span(node->name), text_of_span(node->function),
                            seconds[i] / (double)rounds));
  }
  return list;
}

static PyObject *graph_time(Graph *self, PyObject *argument) {
  Py_ssize_t rounds = PyNumber_AsSsize_t(argument, PyExc_OverflowError);
  int status = 0;
  if ((rounds == -1 && PyErr_Occurred()) || check_bound(self) != 0) return NULL;
  if (rounds < 1)
    return PyErr_Format(PyExc_ValueError, "time: expected at least 1 round, found %zd", rounds);
  struct binding *binding = &self->executor->binding;
  double *seconds = PyMem_Calloc(binding->num_calls + 1, sizeof *seconds);
  if (seconds == NULL) return raise_no_memory();
  uint64_t raised = raised_count();
  Py_BEGIN_ALLOW_THREADS
  for (Py_ssize_t i = 0; i < rounds && status == 0; i++) status = time_calls(binding, seconds);
  Py_END_ALLOW_THREADS
  PyObject *list =
      status == 0 ? times_list(binding, seconds, rounds) : raise_native_error("profile", raised);
  if (status == 0) exception_discard();
  PyMem_Free(seconds);
  return list;
}

/* ---- The object */

static size_t count_uses(const struct binding *binding, const dso_function_object *function) {
  size_t count = 0;
  for (size_t i = 0; i < binding->num_calls; i++)
    count += binding->operators[i].function == function;
  return count;
}

/* An object that other code keeps is alive in any case. */
static int is_only_here(const struct binding *binding, const dso_function_object *function) {
  uint64_t count = __atomic_load_n(&function->object.combined_ref_count, __ATOMIC_RELAXED);
  return (uint32_t)count == count_uses(binding, function);
}

static int graph_traverse(Graph *self, visitproc visit, void *arg) {
  const struct binding *binding = self->executor != NULL ? &self->executor->binding : NULL;
  for (size_t i = 0; binding != NULL && i < binding->num_calls; i++) {
    const dso_function_object *function = binding->operators[i].function;
    if (function == NULL || (i > 0 && function == binding->operators[i - 1].function)) continue;
    if (callback_callable(&function->object) == NULL || !is_only_here(binding, function)) continue;
    int status = callback_traverse(&function->object, visit, arg);
    if (status != 0) return status;
  }
  return 0;
}

static int graph_clear(Graph *self) {
  struct graph_executor *executor = self->executor;
  self->executor = NULL; /* the object may still be used */
  if (executor != NULL) module_release(&executor->module);
  return 0;
}

static void graph_dealloc(Graph *self) {
  PyObject_GC_UnTrack(self);
  (void)graph_clear(self);
  graph_free(&self->graph);
  Py_XDECREF(self->text);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyGetSetDef graph_getset[] = {
    {"inputs", (getter)get_inputs, NULL, NULL, NULL},
    {"functions", (getter)get_functions, NULL, NULL, NULL},
    {"devices", (getter)get_devices, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef graph_methods[] = {
    {"set_params", (PyCFunction)graph_set_params, METH_VARARGS, NULL},
    {"bind", (PyCFunction)graph_bind, METH_VARARGS, NULL},
    {"call", (PyCFunction)(void (*)(void))graph_call, METH_FASTCALL, NULL},
    {"time", (PyCFunction)graph_time, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject Graph_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Graph",
    .tp_basicsize = sizeof(Graph),
    .tp_new = graph_new,
    .tp_traverse = (traverseproc)graph_traverse,
    .tp_clear = (inquiry)graph_clear,
    .tp_dealloc = (destructor)graph_dealloc,
    .tp_getset = graph_getset,
    .tp_methods = graph_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};
