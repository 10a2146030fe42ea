/* SystemLibrary: the registered symbols of statically linked models. */
#include "python/system_library.h"

#include "library/context.h"
#include "elf/layout.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "python/imports.h"
#include "python/span.h"
#include "library/registered.h"
#include "python/verify_checksums.h"

typedef struct {
  PyObject_HEAD
  PyObject *path;    /* str, for messages */
  PyObject *prefix;  /* str */
  PyObject *callees; /* name -> capsule of struct callee */
  PyObject *types;   /* dict: kind of a handle -> CType; NULL until asked */
  struct context *context;
} SystemLibrary;

PyObject **system_library_types(PyObject *library) { return &((SystemLibrary *)library)->types; }

/* Find the symbol <start><prefix><name>: 0, or -1 with an exception set. `address` is NULL if it is
 * absent. */
static int find(const char *start, PyObject *prefix, PyObject *name,
                struct registered_symbol *symbol) {
  PyObject *full = PyUnicode_FromFormat("%s%U%U", start, prefix, name);
  if (full == NULL) return -1;
  Py_ssize_t length;
  const char *text = PyUnicode_AsUTF8AndSize(full, &length);
  *symbol = (struct registered_symbol){.address = NULL};
  if (text == NULL) PyErr_Clear(); /* no symbol name contains lone surrogates */
  else if (strlen(text) == (size_t)length) *symbol = registered_find(text);
  Py_DECREF(full);
  return 0;
}

/* ---- Contexts */

static void *variable_of(const void *library, const char *name) {
  const SystemLibrary *self = library;
  struct registered_symbol symbol = {.address = NULL};
  PyObject *text = PyUnicode_FromString(name);
  if (text != NULL) (void)find("", self->prefix, text, &symbol);
  Py_XDECREF(text);
  PyErr_Clear();
  int is_variable = symbol.address != NULL && (symbol.flags & PF_W) != 0 &&
                    symbol.nbytes >= sizeof(void *) &&
                    (uintptr_t)symbol.address % sizeof(void *) == 0;
  return is_variable ? (void *)(uintptr_t)symbol.address : NULL;
}

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
  self->context = context_fill(variable_of, self);
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
  struct registered_symbol symbol;
  size_t nbytes = 0;
  if (!PyUnicode_Check(name))
    return PyErr_Format(PyExc_TypeError, "data: expected a str, found %s", Py_TYPE(name)->tp_name);
  if (find("", self->prefix, name, &symbol) != 0) return NULL;
  if (symbol.address == NULL) Py_RETURN_NONE;
  const char *text = PyUnicode_AsUTF8(name);
  if (text == NULL) return NULL;
  const char *wrong = registered_data(text, &symbol, &nbytes);
  if (wrong != NULL) return raise_load_error(self->path, "blob", "%U %s", name, wrong);
  return span_view((PyObject *)self, symbol.address, (Py_ssize_t)nbytes, 1);
}

/* ---- Checksums: the names in the list include the prefix */

static int find_listed(const void *Py_UNUSED(library), const char *name, int is_code,
                       const uint8_t **bytes, size_t *nbytes) {
  struct registered_symbol symbol = registered_find(name);
  if (symbol.address == NULL) return 0;
  if (is_code) return (symbol.flags & PF_X) != 0;
  *bytes = symbol.address;
  return registered_text(&symbol, nbytes) == NULL;
}

static PyObject *system_library_structure(SystemLibrary *self, void *Py_UNUSED(closure)) {
  PyObject *name = PyUnicode_FromFormat("%U__packer_checksums", self->prefix);
  const char *symbol = name != NULL ? PyUnicode_AsUTF8(name) : NULL;
  PyObject *result = NULL;
  if (symbol != NULL) result = verify_checksums(self->path, symbol, find_listed, self);
  Py_XDECREF(name);
  return result;
}

/* ---- Functions */

static struct callee *make_callee(const SystemLibrary *self, PyObject *name,
                                  const struct registered_symbol *facts) {
  const char *wrong = NULL;
  size_t nbytes = 0;
  struct callee *callee = NULL;
  if (facts->address != NULL) wrong = registered_text(facts, &nbytes);
  if (wrong == NULL) callee = callee_new(name, facts->address, nbytes, &wrong);
  if (callee == NULL && wrong != NULL)
    raise_load_error(self->path, "malformed", "__packer_fn_%U: %s", name, wrong);
  return callee;
}

/* Names that begin with "__" are data of the models, not packed C functions. */
static int is_reserved(PyObject *name) {
  return PyUnicode_GET_LENGTH(name) >= 2 && PyUnicode_READ_CHAR(name, 0) == '_' &&
         PyUnicode_READ_CHAR(name, 1) == '_';
}

/* Find a safe-call function, else a packed C function, under one prefix. Returns a new callee, or
 * NULL. It sets an exception unless the function is absent. */
static struct callee *look_up(SystemLibrary *self, PyObject *prefix, PyObject *name) {
  struct registered_symbol safe, packed = {.address = NULL}, facts;
  if (find("__tvm_ffi_", prefix, name, &safe) != 0 ||
      find("__packer_fn_", prefix, name, &facts) != 0)
    return NULL;
  if (safe.address == NULL && !is_reserved(name) && find("", prefix, name, &packed) != 0)
    return NULL;
  const struct registered_symbol *code = safe.address != NULL ? &safe : &packed;
  if (code->address == NULL || !(code->flags & PF_X)) return NULL;
  struct callee *callee = make_callee(self, name, &facts);
  if (callee != NULL && code == &safe) callee_call_safe(callee, code->address);
  if (callee != NULL && code == &packed) callee_call_packed(callee, code->address);
  return callee;
}

static PyObject *system_library_function(SystemLibrary *self, PyObject *const *args,
                                         Py_ssize_t count) {
  if (count != 2 || !PyUnicode_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "function: arguments, expected a name and an owner");
  struct callee *callee = callee_find(self->callees, args[0]);
  PyObject *nothing = PyUnicode_FromString("");
  PyObject *const prefixes[] = {self->prefix, nothing};
  for (size_t i = 0; i < 2 && callee == NULL && !PyErr_Occurred(); i++)
    callee = callee_add(self->callees, args[0], look_up(self, prefixes[i], args[0]));
  Py_XDECREF(nothing);
  if (PyErr_Occurred()) return NULL;
  return callee != NULL ? function_new(callee, (PyObject *)self, args[1]) : Py_NewRef(Py_None);
}

/* ---- Names */

struct listing {
  const char *start, *prefix;
  PyObject *names;
};

/* Append <start><name> for each symbol <start><prefix><name>. */
static int list_name(const char *symbol, void *arg) {
  struct listing *listing = arg;
  size_t start = strlen(listing->start), prefix = strlen(listing->prefix);
  if (strncmp(symbol, listing->start, start) != 0 ||
      strncmp(symbol + start, listing->prefix, prefix) != 0)
    return 0;
  PyObject *name = PyUnicode_FromFormat("%s%s", listing->start, symbol + start + prefix);
  int status = name != NULL ? PyList_Append(listing->names, name) : -1;
  Py_XDECREF(name);
  return status;
}

static PyObject *system_library_symbols(SystemLibrary *self, PyObject *argument) {
  struct listing listing = {PyUnicode_AsUTF8(argument), PyUnicode_AsUTF8(self->prefix), NULL};
  if (listing.start == NULL || listing.prefix == NULL) return NULL;
  listing.names = PyList_New(0);
  if (listing.names != NULL && registered_visit(list_name, &listing) != 0) Py_CLEAR(listing.names);
  return listing.names;
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
