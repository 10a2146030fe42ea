/* Library: opening and closing a shared object, and its Python type. */
#define _GNU_SOURCE /* O_PATH */
#include "python/library.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <structmember.h>
#include <unistd.h>

#include "library/context.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "python/imports.h"
#include "library/loaded.h"
#include "library/spelling.h"
#include "python/names.h"
#include "python/path.h"
#include "python/proof.h"
#include "python/span.h"

/* Open a file through /proc/self/fd, because dlopen would expand the tokens in its path. */
static int open_by_descriptor(Library *self, const char *path, struct load_error *error) {
  char name[32];
  self->descriptor = open(path, O_PATH | O_CLOEXEC);
  if (self->descriptor < 0) return load_error_set(error, "io", "%s", strerror(errno));
  snprintf(name, sizeof name, "/proc/self/fd/%d", self->descriptor);
  int status = loaded_open(&self->loaded, name, error);
  if (status != 0) close(self->descriptor);
  return status;
}

static int open_path(Library *self, const char *path) {
  struct load_error error;
  int status;
  Py_BEGIN_ALLOW_THREADS
  status = spelling_has_token(path) ? open_by_descriptor(self, path, &error)
                                    : loaded_open(&self->loaded, path, &error);
  Py_END_ALLOW_THREADS
  if (status != 0)
    return as_status(raise_load_error(self->path, error.reason, "%s", error.message));
  self->is_open = 1;
  return 0;
}

static PyObject *library_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *names[] = {"path", "name", "descriptor", NULL};
  PyObject *argument, *name = NULL;
  int descriptor = -1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$Ui:Library", names, &argument, &name,
                                   &descriptor))
    return NULL;
  PyObject *path = path_bytes(argument);
  Library *self = path ? (Library *)type->tp_alloc(type, 0) : NULL;
  if (self != NULL) {
    self->path = name != NULL ? Py_NewRef(name) : path_str(path);
    self->callees = PyDict_New();
    self->descriptor = -1;
    if (self->path == NULL || self->callees == NULL ||
        open_path(self, PyBytes_AS_STRING(path)) != 0)
      Py_CLEAR(self);
    else if (descriptor >= 0) self->descriptor = descriptor;
  }
  Py_XDECREF(path);
  return (PyObject *)self;
}

/* Without the GIL: dlclose runs the library's destructors, which may be slow or call Python. */
static void close_library(Library *self) {
  PyObject *pending = exception_take();
  Py_BEGIN_ALLOW_THREADS
  loaded_close(&self->loaded);
  /* Close it last: dlopen compares names first, and a new file may get this descriptor's number. */
  if (self->descriptor >= 0) close(self->descriptor);
  Py_END_ALLOW_THREADS
  if (pending != NULL) exception_set(pending);
}

/* The import cache may hold Python objects that reference this library. */
static int library_traverse(Library *self, visitproc visit, void *arg) {
  Py_VISIT(self->origin);
  Py_VISIT(self->verify);
  Py_VISIT(self->types);
  const struct context *context = self->is_open ? self->loaded.context : NULL;
  return context != NULL && context->num_libraries == 1 ? imports_traverse(context, visit, arg) : 0;
}

static int library_clear(Library *self) {
  struct context *context = self->is_open ? self->loaded.context : NULL;
  if (context != NULL && context->num_libraries == 1) imports_retire(context);
  return 0;
}

static void library_dealloc(Library *self) {
  PyObject_GC_UnTrack(self);
  Py_XDECREF(self->callees);
  if (self->is_open) close_library(self);
  pieces_free(&self->pieces);
  Py_XDECREF(self->verify);
  Py_XDECREF(self->origin);
  Py_XDECREF(self->frees);
  Py_XDECREF(self->types);
  Py_XDECREF(self->path);
  Py_TYPE(self)->tp_free((PyObject *)self);
}

static PyObject *library_data(Library *self, PyObject *name) {
  struct elf_symbol symbol;
  const uint8_t *bytes;
  if (!PyUnicode_Check(name))
    return PyErr_Format(PyExc_TypeError, "data: expected a str, found %s", Py_TYPE(name)->tp_name);
  if (!library_find(self, name, &symbol)) Py_RETURN_NONE;
  const char *wrong = loaded_data(&self->loaded, &symbol, &bytes);
  if (wrong != NULL) return raise_symbol_error(self->path, "blob", "", name, symbol.value, wrong);
  return span_view((PyObject *)self, bytes, (Py_ssize_t)symbol.size, 1);
}

static PyObject *library_function(Library *self, PyObject *const *args, Py_ssize_t count) {
  if (count != 2 || !PyUnicode_Check(args[0]))
    return PyErr_Format(PyExc_TypeError, "function: arguments, expected a name and an owner");
  struct callee *callee = callee_find(self->callees, args[0]);
  if (callee == NULL && !PyErr_Occurred()) callee = library_look_up(self, args[0]);
  if (callee != NULL) return function_new(callee, (PyObject *)self, args[1]);
  return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyObject *library_has_code(Library *self, PyObject *name) {
  const uint8_t *code;
  return PyBool_FromLong(PyUnicode_Check(name) && library_find_code(self, name, &code));
}

static PyObject *library_address(Library *self, PyObject *name) {
  const char *text = PyUnicode_AsUTF8(name);
  if (text == NULL) return NULL;
  void *address = loaded_address(&self->loaded, text);
  return address != NULL ? PyLong_FromVoidPtr(address) : Py_NewRef(Py_None);
}

static PyObject *library_declare_packed(Library *self, PyObject *name) {
  struct found_function found = {.is_packed = 1};
  if (!PyUnicode_Check(name) || !library_find_code(self, name, &found.code)) Py_RETURN_FALSE;
  struct callee *callee = callee_add(self->callees, name, callee_new(name, &found));
  return callee != NULL ? Py_NewRef(Py_True) : NULL;
}

static PyObject *library_symbols(Library *self, PyObject *argument) {
  const char *prefix = PyUnicode_AsUTF8(argument);
  if (prefix == NULL) return NULL;
  return symbol_names(&self->loaded.image, elf_at_loaded, self->loaded.address, prefix);
}

static PyObject *library_bind(Library *self, PyObject *module) {
  struct context *context = self->loaded.context;
  if (context != NULL && imports_bind(context, module) != 0) return NULL;
  Py_RETURN_NONE;
}

static PyObject *library_call_for(Library *self, PyObject *origin) {
  if (!Py_IS_TYPE(origin, &Library_Type) || self->origin != NULL)
    return PyErr_Format(PyExc_TypeError, "call_for: expected a Library, once");
  self->origin = Py_NewRef(origin);
  Py_RETURN_NONE;
}

static PyObject *library_map_pieces(Library *self, PyObject *args) {
  struct load_error error;
  struct file_range range;
  unsigned long long offset, nbytes, piece_nbytes;
  PyObject *verify;
  if (!PyArg_ParseTuple(args, "iKKKO:map_pieces", &range.descriptor, &offset, &nbytes,
                        &piece_nbytes, &verify))
    return NULL;
  if (self->verify != NULL)
    return PyErr_Format(PyExc_ValueError, "map_pieces: expected one call, found another");
  range.offset = offset;
  range.nbytes = nbytes;
  range.piece_nbytes = piece_nbytes;
  self->pieces.verify = proof_call;
  self->pieces.context = self;
  if (pieces_map(&self->pieces, &self->loaded, &range, &error) != 0)
    return raise_load_error(self->path, error.reason, "%s", error.message);
  self->verify = Py_NewRef(verify);
  self->pieces_offset = offset;
  Py_RETURN_NONE;
}

static PyObject *library_pieces(Library *self, void *Py_UNUSED(closure)) {
  const struct pieces *pieces = &self->pieces;
  if (pieces->bytes == NULL) Py_RETURN_NONE;
  PyObject *view = span_view((PyObject *)self, pieces->bytes, (Py_ssize_t)pieces->nbytes, 1);
  return view != NULL ? Py_BuildValue("(KN)", self->pieces_offset, view) : NULL;
}

static PyObject *library_key(Library *self, void *Py_UNUSED(closure)) {
  const struct file_key *key = &self->loaded.key;
  return Py_BuildValue("(KKKL)", (unsigned long long)key->device, (unsigned long long)key->inode,
                       (unsigned long long)key->size, (long long)key->mtime_ns);
}

static PyObject *library_structure(Library *self, void *Py_UNUSED(closure)) {
  const struct checksums *checksums = &self->loaded.checksums;
  return checksums->has_blob ? PyLong_FromUnsignedLong(checksums->structure) : Py_NewRef(Py_None);
}

static PyObject *library_repr(Library *self) {
  return PyUnicode_FromFormat("<Library %R>", self->path);
}

static PyMethodDef library_methods[] = {
    {"data", (PyCFunction)library_data, METH_O, NULL},
    {"symbols", (PyCFunction)library_symbols, METH_O, NULL},
    {"function", (PyCFunction)(void (*)(void))library_function, METH_FASTCALL, NULL},
    {"has_code", (PyCFunction)library_has_code, METH_O, NULL},
    {"address", (PyCFunction)library_address, METH_O, NULL},
    {"call_for", (PyCFunction)library_call_for, METH_O, NULL},
    {"declare_packed", (PyCFunction)library_declare_packed, METH_O, NULL},
    {"map_pieces", (PyCFunction)library_map_pieces, METH_VARARGS, NULL},
    {"bind", (PyCFunction)library_bind, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef library_members[] = {
    {"path", T_OBJECT, offsetof(Library, path), READONLY, NULL},
    {"descriptor", T_INT, offsetof(Library, descriptor), READONLY, NULL},
    {"ctime_ns", T_LONGLONG, offsetof(Library, loaded.key.ctime_ns), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef library_getset[] = {
    {"pieces", (getter)library_pieces, NULL, NULL, NULL},
    {"structure", (getter)library_structure, NULL, NULL, NULL},
    {"key", (getter)library_key, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Library_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Library",
    .tp_basicsize = sizeof(Library),
    .tp_new = library_new,
    .tp_traverse = (traverseproc)library_traverse,
    .tp_clear = (inquiry)library_clear,
    .tp_dealloc = (destructor)library_dealloc,
    .tp_repr = (reprfunc)library_repr,
    .tp_methods = library_methods,
    .tp_members = library_members,
    .tp_getset = library_getset,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
};
