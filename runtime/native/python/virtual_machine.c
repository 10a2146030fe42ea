/* VirtualMachine: binding bytecode, and its functions as Functions. */
#include "python/virtual_machine.h"

#include "python/call/callback.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "abi/raised.h"
#include "python/bytecode.h"
#include "python/container.h"
#include "python/machine_parts.h"
#include "python/name_bytes.h"

typedef struct {
  PyObject_HEAD
  struct vm *vm;
  PyObject *callees; /* name -> capsule of struct callee */
} VirtualMachine;

/* ---- The machine */

static struct vm *make_machine(const Bytecode *bytecode, const struct machine_parts *parts,
                               Py_ssize_t num_devices) {
  const struct vm_parts tables = {parts->constants, parts->weights, parts->callees};
  uint64_t count = raised_count();
  struct vm *vm;
  Py_BEGIN_ALLOW_THREADS /* vm_new may copy constants to a device */
  vm = vm_new(&bytecode->code, &tables, parts->devices, (size_t)num_devices);
  Py_END_ALLOW_THREADS
  if (vm == NULL) (void)raise_native_error("VirtualMachine", count);
  return vm;
}

static int check_counts(const Bytecode *bytecode, const struct machine_lists *lists) {
  size_t num_constants = (size_t)PyList_GET_SIZE(lists->constants);
  size_t num_weights = (size_t)PyList_GET_SIZE(lists->weights);
  size_t num_callees = (size_t)PyList_GET_SIZE(lists->callees);
  if (num_constants == bytecode->code.num_constants && num_weights == num_constants &&
      num_callees == bytecode->code.num_functions)
    return 0;
  return raise_format(
      PyExc_ValueError,
      "VirtualMachine: expected %zu constants and weights and %zu callees, found %zu, %zu "
      "and %zu",
      bytecode->code.num_constants, bytecode->code.num_functions, num_constants, num_weights,
      num_callees);
}

static PyObject *machine_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"bytecode", "constants", "weights", "callees", "devices", NULL};
  PyObject *bytecode;
  struct machine_lists lists;
  struct machine_parts parts = {0};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!O!O!:VirtualMachine", names,
                                   &Bytecode_Type, &bytecode, &PyList_Type, &lists.constants,
                                   &PyList_Type, &lists.weights, &PyList_Type, &lists.callees,
                                   &PyList_Type, &lists.devices))
    return NULL;
  if (check_counts((Bytecode *)bytecode, &lists) != 0) return NULL;
  VirtualMachine *self = (VirtualMachine *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->callees = PyDict_New();
  if (self->callees != NULL && machine_parts_make(&parts, &lists) == 0)
    self->vm = make_machine((Bytecode *)bytecode, &parts, PyList_GET_SIZE(lists.devices));
  machine_parts_free(&parts);
  if (self->vm == NULL) Py_CLEAR(self);
  return (PyObject *)self;
}

static void machine_dealloc(VirtualMachine *self) {
  PyObject *pending = exception_take();
  Py_XDECREF(self->callees);
  if (self->vm != NULL) vm_release(self->vm);
  if (pending != NULL) exception_set(pending);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ---- Functions */

static const struct vm_routine *find_routine(const struct vm *vm, const char *name) {
  for (size_t i = 0; i < vm->num_functions; i++)
    if (vm->routines[i].first != NULL && strcmp(vm->routines[i].name, name) == 0)
      return &vm->routines[i];
  return NULL;
}

const struct vm_routine *virtual_machine_routine(PyObject *machine, PyObject *name) {
  PyObject *bytes = name_bytes(name);
  const struct vm_routine *routine =
      bytes ? find_routine(((VirtualMachine *)machine)->vm, PyBytes_AS_STRING(bytes)) : NULL;
  Py_XDECREF(bytes);
  return routine;
}

static struct callee *look_up(VirtualMachine *self, PyObject *name, PyObject *params) {
  const struct vm_routine *routine = virtual_machine_routine((PyObject *)self, name);
  if (routine == NULL) return NULL;
  return callee_add(self->callees, name, callee_of_object(name, params, vm_closure_new(routine)));
}

static PyObject *machine_function(VirtualMachine *self, PyObject *args) {
  PyObject *name, *params, *owner;
  if (!PyArg_ParseTuple(args, "UO!O:function", &name, &PyTuple_Type, &params, &owner)) return NULL;
  struct callee *callee = callee_find(self->callees, name);
  if (callee == NULL && !PyErr_Occurred()) callee = look_up(self, name, params);
  if (callee != NULL) return function_new(callee, (PyObject *)self, owner);
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyObject *vm_builtin_names(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
  PyObject *names = PyList_New(0);
  for (const struct vm_builtin_row *row = vm_builtins; names != NULL && row->name != NULL; row++)
    list_add(&names, PyUnicode_FromString(row->name));
  return names;
}

/* ---- Measuring */

static PyObject *machine_measure(VirtualMachine *self, PyObject *Py_UNUSED(none)) {
  if (self->vm->costs == NULL && vm_measure(self->vm) != 0) return raise_no_memory();
  Py_RETURN_NONE;
}

static PyObject *machine_costs(VirtualMachine *self, PyObject *Py_UNUSED(none)) {
  const struct vm *vm = self->vm;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL && vm->costs != NULL && i < vm->num_instructions; i++) {
    struct vm_cost *cost = &vm->costs[i];
    long long calls = __atomic_load_n(&cost->calls, __ATOMIC_RELAXED);
    long long nanoseconds = __atomic_load_n(&cost->nanoseconds, __ATOMIC_RELAXED);
    if (calls == 0) continue;
    list_add(&list, Py_BuildValue("(ssLL)", vm_routine_at(vm, i)->name,
                                  vm->routines[vm->rows[i]].name, calls, nanoseconds));
  }
  return list;
}

/* ---- The instrument */

static PyObject *machine_set_instrument(VirtualMachine *self, PyObject *instrument) {
  dso_object *callback = NULL;
  if (instrument != Py_None && (callback = callback_new(instrument, NULL)) == NULL) return NULL;
  vm_set_instrument(self->vm, (dso_function_object *)(void *)callback);
  if (callback != NULL) object_release(callback);
  Py_RETURN_NONE;
}

static PyMethodDef machine_methods[] = {
    {"set_instrument", (PyCFunction)machine_set_instrument, METH_O, NULL},
    {"measure", (PyCFunction)machine_measure, METH_NOARGS, NULL},
    {"costs", (PyCFunction)machine_costs, METH_NOARGS, NULL},
    {"function", (PyCFunction)machine_function, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyTypeObject VirtualMachine_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.VirtualMachine",
    .tp_basicsize = sizeof(VirtualMachine),
    .tp_new = machine_new,
    .tp_dealloc = (destructor)machine_dealloc,
    .tp_methods = machine_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};
