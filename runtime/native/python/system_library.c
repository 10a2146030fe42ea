/* SystemLibrary: the registered symbols of statically linked models. */
#include "python/system_library.h"

#include "library/context.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "python/imports.h"
#include "python/library.h"
#include "python/names.h"
#include "python/span.h"
#include "library/registered.h"
#include "python/verify_checksums.h"

typedef struct {
  PyObject_HEAD
  PyObject *path;      /* str, for messages */
  PyObject *prefix;    /* str */
  const char *symbols; /* its text; of a prefix that no symbol has a text that none has */
  PyObject *callees;   /* name -> capsule of struct callee */
  PyObject *types;     /* dict: kind of a handle -> CType; NULL until asked */
  struct context *context;
} SystemLibrary;

PyObject **system_library_types(PyObject *library) { return &((SystemLibrary *)library)->types; }

static PyObject *system_library_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"symbol_prefix", NULL};
  PyObject *prefix;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "U:SystemLibrary", names, &prefix)) return NULL;
  SystemLibrary *self = (SystemLibrary *)type->tp_alloc(type, 0);
  if (self == NULL) return NULL;
  self->prefix = Py_NewRef(prefix);
  self->path = PyUnicode_FromFormat("system library %R", prefix);
  self->callees = PyDict_New();
  if (self->path == NULL || self->callees == NULL) {
    Py_DECREF(self);
    return NULL;
  }
  self->symbols = symbol_name(prefix);
  if (self->symbols == NULL) self->symbols = "\xff";
  self->context = context_fill(registered_variable, self->symbols);
  return (PyObject *)self;
}

/* The context is never freed, because the code that uses it is never unmapped. */
static void system_library_dealloc(SystemLibrary *self) {
  Py_XDECREF(self->callees);
  Py_XDECREF(self->types);
  Py_XDECREF(self->prefix);
  Py_XDECREF(self->path);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

/* ---- Data */

static PyObject *system_library_data(SystemLibrary *self, PyObject *name) {
  size_t nbytes = 0;
  if (!PyUnicode_Check(name))
    return PyErr_Format(PyExc_TypeError, "data: expected a str, found %s", Py_TYPE(name)->tp_name);
  const char *text = symbol_name(name);
  if (text == NULL) Py_RETURN_NONE;
  struct registered_symbol symbol = registered_find_in("", self->symbols, text);
  if (symbol.address == NULL) Py_RETURN_NONE;
  const char *wrong = registered_data(text, &symbol, &nbytes);
  if (wrong != NULL) return raise_load_error(self->path, "blob", "%U %s", name, wrong);
  return span_view((PyObject *)self, symbol.address, (Py_ssize_t)nbytes, 1);
}

/* ---- Checksums: the names in the list include the prefix */

static PyObject *system_library_structure(SystemLibrary *self, void *Py_UNUSED(closure)) {
  PyObject *name = PyUnicode_FromFormat("%U__packer_checksums", self->prefix);
  const char *symbol = name != NULL ? PyUnicode_AsUTF8(name) : NULL;
  PyObject *result = NULL;
  if (symbol != NULL) result = verify_checksums(self->path, symbol, registered_listed, self);
  Py_XDECREF(name);
  return result;
}

/* ---- Functions */

static struct callee *look_up(SystemLibrary *self, PyObject *name) {
  struct found_function found;
  struct load_error error;
  const char *text = symbol_name(name);
  int status = text != NULL ? registered_function(self->symbols, text, &found, &error) : 0;
  return callee_found(self->path, self->callees, name, status, &found, &error);
}

static PyObject *system_library_function(SystemLibrary *self, PyObject *const *args,
                                         Py_ssize_t count) {
  if (count != 2 || !PyUnicode_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "function: arguments, expected a name and an owner");
  struct callee *callee = callee_find(self->callees, args[0]);
  if (callee == NULL && !PyErr_Occurred()) callee = look_up(self, args[0]);
  if (callee != NULL) return function_new(callee, (PyObject *)self, args[1]);
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* ---- Names */

static int list_name(const char *start, const char *name, void *names) {
  PyObject *text = PyUnicode_FromFormat("%s%s", start, name);
  int status = text != NULL ? PyList_Append(names, text) : -1;
  Py_XDECREF(text);
  return status;
}

static PyObject *system_library_symbols(SystemLibrary *self, PyObject *argument) {
  const char *start = PyUnicode_AsUTF8(argument);
  PyObject *names = start != NULL ? PyList_New(0) : NULL;
  if (names != NULL && registered_visit_in(start, self->symbols, list_name, names) != 0)
    Py_CLEAR(names);
  return names;
}

static PyObject *system_library_bind(SystemLibrary *self, PyObject *module) {
  if (self->context != NULL && imports_bind(self->context, module) != 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject *system_library_path(SystemLibrary *self, void *Py_UNUSED(closure)) {
  return Py_NewRef(self->path);
}

static PyMethodDef system_library_methods[] = {
    {"data", (PyCFunction)system_library_data, METH_O, NULL},
    {"symbols", (PyCFunction)system_library_symbols, METH_O, NULL},
    {"function", (PyCFunction)(void (*)(void))system_library_function, METH_FASTCALL, NULL},
    {"bind", (PyCFunction)system_library_bind, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef system_library_getset[] = {
    {"structure", (getter)system_library_structure, NULL, NULL, NULL},
    {"path", (getter)system_library_path, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject SystemLibrary_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.SystemLibrary",
    .tp_basicsize = sizeof(SystemLibrary),
    .tp_new = system_library_new,
    .tp_dealloc = (destructor)system_library_dealloc,
    .tp_methods = system_library_methods,
    .tp_getset = system_library_getset,
    .tp_flags = Py_TPFLAGS_DEFAULT,
};
