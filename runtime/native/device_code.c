#include "device_code.h"

#include <string.h>

#include "exception.h"
#include "function.h"
#include "interpreter.h"
#include "kernel.h"
#include "raised.h"

static const char TARGET[] = "runtime._core.kernel";

typedef struct {
  PyObject_HEAD
  struct kernel_module *module;
  PyObject *targets; /* name -> capsule of struct target */
} DeviceCode;

/* ---- The bytes; kernels keep them, which may outlive this object in host code */

struct owner {
  Py_buffer view;
  char fmt[];
};

/* Any thread may drop the last kernel. */
static void release_owner(void *memory) {
  struct owner *owner = memory;
  if (!interpreter_runs()) return; /* the interpreter's objects end with it */
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *pending = exception_take();
  PyBuffer_Release(&owner->view);
  if (pending != NULL) exception_set(pending);
  PyMem_Free(owner);
  PyGILState_Release(gil);
}

static struct kernel_module *make_module(const struct kernel_driver *driver, const char *fmt,
                                         PyObject *data) {
  size_t size = strlen(fmt) + 1;
  struct owner *owner = PyMem_Malloc(sizeof *owner + size);
  if (owner == NULL) return (struct kernel_module *)PyErr_NoMemory();
  memcpy(owner->fmt, fmt, size);
  if (PyObject_GetBuffer(data, &owner->view, PyBUF_SIMPLE) != 0) {
    PyMem_Free(owner);
    return NULL;
  }
  struct kernel_module *module = kernel_module_new(
      driver, owner->fmt, owner->view.buf, (size_t)owner->view.len, release_owner, owner);
  if (module != NULL) return module;
  release_owner(owner);
  return (struct kernel_module *)PyErr_NoMemory();
}

static PyObject *device_code_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"type_key", "fmt", "data", NULL};
  const char *type_key, *fmt;
  PyObject *data;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "ssO:DeviceCode", names, &type_key, &fmt, &data))
    return NULL;
  const struct kernel_driver *driver = kernel_driver(type_key);
  if (driver == NULL)
    return PyErr_Format(PyExc_ValueError, "type key '%s' has no driver binding", type_key);
  struct kernel_module *module = make_module(driver, fmt, data);
  DeviceCode *self = module ? (DeviceCode *)type->tp_alloc(type, 0) : NULL;
  if (self == NULL) {
    if (module != NULL) kernel_module_release(module);
    return NULL;
  }
  self->module = module;
  self->targets = PyDict_New();
  if (self->targets == NULL) Py_CLEAR(self);
  return (PyObject *)self;
}

static void device_code_dealloc(DeviceCode *self) {
  Py_XDECREF(self->targets);
  kernel_module_release(self->module);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ---- Kernels */

/* What a look-up is given. */
struct request {
  PyObject *name, *arg_types, *tags, *owner;
  const char *code_name, *facts;
  Py_ssize_t facts_length;
};

static int read_types(PyObject *tuple, DLDataType *types) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(tuple, i), "bbH:arg_types", &types[i].code,
                          &types[i].bits, &types[i].lanes))
      return -1;
  return 0;
}

static int read_tags(PyObject *tuple, const char **tags) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    if ((tags[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, i))) == NULL) return -1;
  return 0;
}

/* Of -1: the error that native code raised since `count`. */
static int take_raised(const struct request *request, int status, uint64_t count) {
  const struct target target = {.name = request->name};
  if (status != 0) raise_call_error(&target, status, count);
  return status;
}

static int fill_signature(const struct request *request, struct kernel_signature *signature,
                          DLDataType *types, const char **tags) {
  const char *name = PyUnicode_AsUTF8(request->name);
  if (name == NULL || read_types(request->arg_types, types) != 0 ||
      read_tags(request->tags, tags) != 0)
    return -1;
  signature->name = strdup(name);
  signature->code_name = strdup(request->code_name);
  if (signature->name == NULL || signature->code_name == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  uint64_t count = raised_count();
  int status = kernel_signature_set(signature, types, (int)PyTuple_GET_SIZE(request->arg_types),
                                    tags, (int)PyTuple_GET_SIZE(request->tags));
  return take_raised(request, status, count);
}

static int make_signature(const struct request *request, struct kernel_signature *signature) {
  size_t num_types = (size_t)PyTuple_GET_SIZE(request->arg_types);
  size_t num_tags = (size_t)PyTuple_GET_SIZE(request->tags);
  DLDataType *types = PyMem_New(DLDataType, num_types + 1);
  const char **tags = PyMem_New(const char *, num_tags + 1);
  int status = -1;
  if (types != NULL && tags != NULL) status = fill_signature(request, signature, types, tags);
  else
    PyErr_NoMemory();
  PyMem_Free(types);
  PyMem_Free(tags);
  if (status != 0) kernel_signature_clear(signature);
  return status;
}

static dso_object *make_kernel(DeviceCode *self, const struct request *request) {
  struct kernel_signature signature = {.device_type = self->module->driver->device_type};
  if (make_signature(request, &signature) != 0) return NULL;
  dso_object *kernel = kernel_new(self->module, &signature);
  return kernel != NULL ? kernel : (dso_object *)PyErr_NoMemory();
}

static void free_target(PyObject *capsule) {
  target_free(PyCapsule_GetPointer(capsule, TARGET));
}

/* The kernel's reference goes to the target. */
static struct target *make_target(const struct request *request, dso_object *kernel) {
  const char *wrong;
  struct target *target = target_new(request->name, (const uint8_t *)request->facts,
                                     (size_t)request->facts_length + 1, &wrong);
  if (target == NULL) {
    if (wrong != NULL) PyErr_Format(PyExc_ValueError, "%U: facts: %s", request->name, wrong);
    object_release(kernel);
    return NULL;
  }
  target_call_object(target, kernel);
  return target;
}

static struct target *look_up(DeviceCode *self, const struct request *request) {
  dso_object *kernel = make_kernel(self, request);
  struct target *target = kernel ? make_target(request, kernel) : NULL;
  PyObject *capsule = target ? PyCapsule_New(target, TARGET, free_target) : NULL;
  if (capsule == NULL) {
    if (target != NULL) target_free(target);
    return NULL;
  }
  int status = PyDict_SetItem(self->targets, request->name, capsule);
  Py_DECREF(capsule);
  return status == 0 ? target : NULL;
}

static PyObject *device_code_function(DeviceCode *self, PyObject *args) {
  struct request request;
  if (!PyArg_ParseTuple(args, "UsO!O!s#O:function", &request.name, &request.code_name,
                        &PyTuple_Type, &request.arg_types, &PyTuple_Type, &request.tags,
                        &request.facts, &request.facts_length, &request.owner))
    return NULL;
  PyObject *capsule = PyDict_GetItemWithError(self->targets, request.name);
  if (capsule == NULL && PyErr_Occurred()) return NULL;
  struct target *target =
      capsule ? PyCapsule_GetPointer(capsule, TARGET) : look_up(self, &request);
  return target ? function_new(target, (PyObject *)self, request.owner) : NULL;
}

PyObject *has_driver(PyObject *Py_UNUSED(module), PyObject *type_key) {
  const char *key = PyUnicode_AsUTF8(type_key);
  const struct kernel_driver *driver = key ? kernel_driver(key) : NULL;
  if (key == NULL) return NULL;
  return PyBool_FromLong(driver != NULL && driver->is_there());
}

static PyMethodDef device_code_methods[] = {
    {"function", (PyCFunction)device_code_function, METH_VARARGS,
     "function($self, name, code_name, arg_types, launch_param_tags, facts, owner, /)\n--\n\n"
     "The kernel as a Function that keeps `owner` alive."},
    {NULL, NULL, 0, NULL},
};

PyTypeObject DeviceCode_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.DeviceCode",
    .tp_doc = "The code of a device module; built for a device when a kernel is launched there.",
    .tp_basicsize = sizeof(DeviceCode),
    .tp_new = device_code_new,
    .tp_dealloc = (destructor)device_code_dealloc,
    .tp_methods = device_code_methods,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};
