/* Handles are made from results, from the arguments of callbacks and from fields of structs. */
#include "python/call/function.h"
#include "python/call/handle.h"
#include "python/exception.h"
#include "python/library.h"

/* Takes over the reference to `kind`. */
static Handle *make(void *address, PyObject *kind, PyObject *function) {
  Handle *self = PyObject_GC_New(Handle, &Handle_Type);
  if (self == NULL) {
    Py_XDECREF(kind);
    return NULL;
  }
  self->address = address;
  self->kind = kind;
  self->library = function != NULL ? Py_NewRef(function_library(function)) : NULL;
  self->owner = function != NULL ? Py_NewRef(function_owner(function)) : NULL;
  self->release = NULL;
  self->parent = NULL;
  self->weak = NULL;
  self->uses = self->children = self->is_closed = self->is_waiting = 0;
  PyObject_GC_Track(self);
  return self;
}

/* The library owns what is found. */
const struct callee *handle_find_release(PyObject *function) {
  const struct callee *callee = function_callee(function);
  if (callee->late->release != NULL) return callee->late->release;
  PyObject *release = PyObject_CallMethod(function_library(function), "function", "sO",
                                          callee->facts.free, function_owner(function));
  if (release != NULL && function_check(release)) callee->late->release = function_callee(release);
  else if (release != NULL)
    PyErr_Format(PyExc_ValueError,
                 "%U: free, expected a function of the library, found '%s'; export it again",
                 callee->name, callee->facts.free);
  Py_XDECREF(release);
  return callee->late->release;
}

/* Return true if the function takes handles of this kind. */
static int releases(const struct callee *release, PyObject *kind) {
  PyObject *own = callee_kind(release, 0);
  return own == NULL || kind == NULL || own == kind;
}

/* Release an object that gets no handle, because memory is exhausted. */
static PyObject *give_up(const struct callee *release, void *address) {
  PyObject *pending = exception_take();
  if (release != NULL && handle_call_release(release, address) != 0) PyErr_Clear();
  exception_set(pending);
  return NULL;
}

PyObject *handle_from_result(PyObject *function, void *address, const char *code, Handle *parent) {
  if (address == NULL) Py_RETURN_NONE;
  const struct callee *callee = function_callee(function);
  const struct callee *release = callee->facts.free != NULL ? callee->late->release : NULL;
  PyObject *kind = code != NULL ? code_kind_name(code) : NULL;
  if (release != NULL && !releases(release, kind)) release = NULL;
  if (kind == NULL && PyErr_Occurred()) return give_up(release, address);
  Handle *self = make(address, kind, function);
  if (self == NULL) return give_up(release, address);
  self->release = release;
  /* So that a walk along a list, whose items belong to the list, makes no chain of parents. */
  while (parent != NULL && parent->release == NULL && parent->parent != NULL)
    parent = parent->parent;
  self->parent = (Handle *)Py_XNewRef((PyObject *)parent);
  if (parent != NULL) parent->children++;
  return (PyObject *)self;
}

PyObject *handle_borrow(const struct source *source, void *address) {
  if (address == NULL) Py_RETURN_NONE;
  return (PyObject *)make(address, NULL, source->function);
}

/* The library whose functions a library calls for it, or itself. */
static PyObject *origin_of(PyObject *library) {
  if (library == NULL || !Py_IS_TYPE(library, &Library_Type)) return library;
  PyObject *origin = ((Library *)library)->origin;
  return origin != NULL ? origin : library;
}

/* A file that is opened again while its code is in use is another Library, and the same code. */
int handle_is_of(const Handle *self, PyObject *function) {
  PyObject *own = origin_of(self->library), *other = origin_of(function_library(function));
  if (own == other) return 1;
  return own != NULL && Py_IS_TYPE(own, &Library_Type) && Py_IS_TYPE(other, &Library_Type) &&
         ((Library *)own)->loaded.handle == ((Library *)other)->loaded.handle;
}

PyObject *handle_belongs(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *function, *handle;
  if (!PyArg_ParseTuple(args, "O!O!:handle_belongs", &Function_Type, &function, &Handle_Type,
                        &handle))
    return NULL;
  return PyBool_FromLong(handle_is_of((Handle *)handle, function));
}

PyObject *handle_at(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *function, *integer, *kind;
  if (!PyArg_ParseTuple(args, "O!O!O:handle_at", &Function_Type, &function, &PyLong_Type, &integer,
                        &kind))
    return NULL;
  if (kind != Py_None && !PyUnicode_CheckExact(kind))
    return PyErr_Format(PyExc_TypeError, "handle_at: expected a str or None, found %s",
                        Py_TYPE(kind)->tp_name);
  void *address = PyLong_AsVoidPtr(integer);
  if (address == NULL && PyErr_Occurred()) return NULL;
  if (address == NULL) Py_RETURN_NONE;
  if (kind == Py_None) return (PyObject *)make(address, NULL, function);
  Py_INCREF(kind);
  PyUnicode_InternInPlace(&kind);
  return (PyObject *)make(address, kind, function);
}
