/* VirtualMachine: binding bytecode, and its functions as Functions. */
#include "python/virtual_machine.h"

#include "python/call/callback.h"
#include "python/device.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "vm/vm.h"
#include "python/bytecode.h"

static const char TARGET[] = "runtime._core.routine";

typedef struct {
  PyObject_HEAD
  struct vm *vm;
  PyObject *functions; /* name -> capsule of struct callee */
} VirtualMachine;

/* ---- Constants: (type index, value) */

static int shape_constant(PyObject *value, dso_any *made) {
  int64_t dims[TENSOR_MAX_DIMS];
  if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) > TENSOR_MAX_DIMS) {
    PyErr_Format(PyExc_TypeError, "constants: shape, expected a tuple of at most %d extents",
                 TENSOR_MAX_DIMS);
    return -1;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
    dims[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(value, i));
    if (dims[i] == -1 && PyErr_Occurred()) return -1;
  }
  dso_object *shape = shape_object_new((size_t)PyTuple_GET_SIZE(value), dims);
  if (shape == NULL) {
    raise_no_memory();
    return -1;
  }
  *made = any_of_object(shape);
  return 0;
}

static int dtype_constant(PyObject *value, dso_any *made) {
  DLDataType *dtype = &made->v_dtype;
  made->type_index = DSO_DATA_TYPE;
  return PyArg_ParseTuple(value, "bbH", &dtype->code, &dtype->bits, &dtype->lanes) ? 0 : -1;
}

/* Unlike the argument of a C function, a constant may contain NUL. */
static int str_constant(PyObject *value, dso_any *made) {
  Py_ssize_t nbytes;
  const char *text = PyUnicode_AsUTF8AndSize(value, &nbytes);
  if (text == NULL) return -1;
  if (object_make_string(made, 1, text, (size_t)nbytes) == 0) return 0;
  raise_no_memory();
  return -1;
}

static int make_constant(PyObject *item, dso_any *made) {
  int type_index;
  PyObject *value;
  if (!PyArg_ParseTuple(item, "iO:constants", &type_index, &value)) return -1;
  if (type_index == DSO_SHAPE) return shape_constant(value, made);
  if (type_index == DSO_DATA_TYPE) return dtype_constant(value, made);
  if (type_index == DSO_STR) return str_constant(value, made);
  if (convert_owned(item, value, NULL, made) != 0) return -1;
  if (type_index == DSO_TENSOR && made->type_index == DSO_TENSOR)
    tensor_object_mark(made->v_ptr, TENSOR_READ_ONLY);
  return 0;
}

/* Return the number of constants made. An exception is set if it is not all of them. */
static Py_ssize_t make_constants(PyObject *list, dso_any *made) {
  Py_ssize_t i = 0;
  for (; i < PyList_GET_SIZE(list); i++) {
    made[i] = (dso_any){.type_index = DSO_NONE};
    if (make_constant(PyList_GET_ITEM(list, i), &made[i]) != 0) break;
  }
  return i;
}

/* ---- Callees: a callable, or None for functions in bytecode and for built-ins */

static Py_ssize_t make_callees(PyObject *list, dso_object **made) {
  Py_ssize_t i = 0;
  for (; i < PyList_GET_SIZE(list); i++) {
    PyObject *callable = PyList_GET_ITEM(list, i);
    made[i] = callable != Py_None ? callback_new(callable, NULL) : NULL;
    if (made[i] == NULL && callable != Py_None) break;
  }
  return i;
}

/* ---- The machine */

static DLDevice *read_devices(PyObject *list) {
  DLDevice *devices = PyMem_New(DLDevice, (size_t)PyList_GET_SIZE(list) + 1);
  if (devices == NULL) return raise_no_memory();
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
    if (device_from_object(PyList_GET_ITEM(list, i), &devices[i]) != 0) {
      PyMem_Free(devices);
      return NULL;
    }
  return devices;
}

/* The arguments of the constructor, converted to C. */
struct parts {
  dso_any *constants;
  dso_object **callees;
  DLDevice *devices;
  Py_ssize_t num_constants, num_callees;
};

static void free_parts(struct parts *parts) {
  PyObject *pending = exception_take();
  for (Py_ssize_t i = 0; i < parts->num_constants; i++) any_release(&parts->constants[i]);
  for (Py_ssize_t i = 0; i < parts->num_callees; i++)
    if (parts->callees[i] != NULL) object_release(parts->callees[i]);
  PyMem_Free(parts->constants);
  PyMem_Free(parts->callees);
  PyMem_Free(parts->devices);
  if (pending != NULL) exception_set(pending);
}

static int make_parts(struct parts *parts, PyObject *constants, PyObject *callees,
                      PyObject *devices) {
  parts->constants = PyMem_New(dso_any, (size_t)PyList_GET_SIZE(constants) + 1);
  parts->callees = PyMem_New(dso_object *, (size_t)PyList_GET_SIZE(callees) + 1);
  if (parts->constants == NULL || parts->callees == NULL) {
    raise_no_memory();
    return -1;
  }
  parts->num_constants = make_constants(constants, parts->constants);
  if (parts->num_constants < PyList_GET_SIZE(constants)) return -1;
  parts->num_callees = make_callees(callees, parts->callees);
  if (parts->num_callees < PyList_GET_SIZE(callees)) return -1;
  parts->devices = read_devices(devices);
  return parts->devices != NULL ? 0 : -1;
}

static struct vm *make_machine(const Bytecode *bytecode, const struct parts *parts,
                               Py_ssize_t num_devices) {
  uint64_t count = raised_count();
  struct vm *vm;
  Py_BEGIN_ALLOW_THREADS /* vm_new may copy constants to a device */
  vm = vm_new(&bytecode->code, parts->constants, parts->callees, parts->devices,
              (size_t)num_devices);
  Py_END_ALLOW_THREADS
  if (vm != NULL) return vm;
  PyObject *name = PyUnicode_FromString("VirtualMachine");
  const struct callee callee = {.name = name};
  if (name != NULL) raise_call_error(&callee, -1, count);
  Py_XDECREF(name);
  return NULL;
}

static int check_counts(const Bytecode *bytecode, PyObject *constants, PyObject *callees) {
  if ((size_t)PyList_GET_SIZE(constants) == bytecode->code.num_constants &&
      (size_t)PyList_GET_SIZE(callees) == bytecode->code.num_functions)
    return 0;
  PyErr_Format(PyExc_ValueError,
               "VirtualMachine: expected %zu constants and %zu callees, found %zd and %zd",
               bytecode->code.num_constants, bytecode->code.num_functions,
               PyList_GET_SIZE(constants), PyList_GET_SIZE(callees));
  return -1;
}

static PyObject *machine_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"bytecode", "constants", "callees", "devices", NULL};
  PyObject *bytecode, *constants, *callees, *devices;
  struct parts parts = {0};
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!O!O!O!:VirtualMachine", names, &Bytecode_Type,
                                   &bytecode, &PyList_Type, &constants, &PyList_Type, &callees,
                                   &PyList_Type, &devices))
    return NULL;
  if (check_counts((Bytecode *)bytecode, constants, callees) != 0) return NULL;
  VirtualMachine *self = (VirtualMachine *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->functions = PyDict_New();
  if (self->functions != NULL && make_parts(&parts, constants, callees, devices) == 0)
    self->vm = make_machine((Bytecode *)bytecode, &parts, PyList_GET_SIZE(devices));
  free_parts(&parts);
  if (self->vm == NULL) Py_CLEAR(self);
  return (PyObject *)self;
}

static void machine_dealloc(VirtualMachine *self) {
  PyObject *pending = exception_take();
  Py_XDECREF(self->functions);
  if (self->vm != NULL) vm_release(self->vm);
  if (pending != NULL) exception_set(pending);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ---- Functions */

static void free_target(PyObject *capsule) { callee_free(PyCapsule_GetPointer(capsule, TARGET)); }

static const struct vm_routine *find_routine(const struct vm *vm, const char *name) {
  for (size_t i = 0; i < vm->num_functions; i++)
    if (vm->routines[i].first != NULL && strcmp(vm->routines[i].name, name) == 0)
      return &vm->routines[i];
  return NULL;
}

static struct callee *make_callee(const struct vm_routine *routine, PyObject *name,
                                  PyObject *signature) {
  const char *wrong;
  struct callee *callee = callee_new(name, NULL, 0, &wrong);
  if (callee == NULL) return NULL;
  callee->signature = Py_NewRef(signature);
  dso_object *closure = vm_closure_new(routine);
  if (closure != NULL) {
    callee_call_object(callee, closure);
    return callee;
  }
  callee_free(callee);
  return raise_no_memory();
}

static struct callee *look_up(VirtualMachine *self, PyObject *name, PyObject *signature) {
  const char *text = PyUnicode_AsUTF8(name);
  const struct vm_routine *routine = text ? find_routine(self->vm, text) : NULL;
  if (routine == NULL) return NULL;
  struct callee *callee = make_callee(routine, name, signature);
  PyObject *capsule = callee ? PyCapsule_New(callee, TARGET, free_target) : NULL;
  if (capsule == NULL) {
    if (callee != NULL) callee_free(callee);
    return NULL;
  }
  int status = PyDict_SetItem(self->functions, name, capsule);
  Py_DECREF(capsule);
  return status == 0 ? callee : NULL;
}

static PyObject *machine_function(VirtualMachine *self, PyObject *args) {
  PyObject *name, *signature, *owner;
  if (!PyArg_ParseTuple(args, "UUO:function", &name, &signature, &owner)) return NULL;
  PyObject *capsule = PyDict_GetItemWithError(self->functions, name);
  if (capsule == NULL && PyErr_Occurred()) return NULL;
  struct callee *callee =
      capsule ? PyCapsule_GetPointer(capsule, TARGET) : look_up(self, name, signature);
  if (callee != NULL) return function_new(callee, (PyObject *)self, owner);
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyObject *vm_builtin_names(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none)) {
  PyObject *names = PyList_New(0);
  for (const struct vm_builtin_row *row = vm_builtins; names != NULL && row->name != NULL; row++) {
    PyObject *name = PyUnicode_FromString(row->name);
    if (name == NULL || PyList_Append(names, name) != 0) Py_CLEAR(names);
    Py_XDECREF(name);
  }
  return names;
}

static PyMethodDef machine_methods[] = {
    {"function", (PyCFunction)machine_function, METH_VARARGS,
     "function($self, name, signature, owner, /)\n--\n\n"
     "Return a function of the bytecode, which keeps `owner` alive, or None."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject VirtualMachine_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.VirtualMachine",
    .tp_doc = "Bytecode bound to constants, functions and devices.",
    .tp_basicsize = sizeof(VirtualMachine),
    .tp_new = machine_new,
    .tp_dealloc = (destructor)machine_dealloc,
    .tp_methods = machine_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};
