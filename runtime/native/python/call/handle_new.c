/* Handles are made from results, from the arguments of callbacks and from fields of structs. */
#include "python/call/function.h"

#include <string.h>

#include "python/call/handle_members.h"
#include "python/call/kept.h"
#include "python/call/member_value.h"
#include "python/exception.h"
#include "python/library.h"
#include "python/system_library.h"

/* Freed handles, for the next ones. None was finalised by the collector, which would not do it again. */
enum { MOST_FREE = 64 };
static Handle *free_handles[MOST_FREE];
static int num_free;

static Handle *allocate(void) {
  if (num_free == 0) return PyObject_GC_New(Handle, &Handle_Type);
  return (Handle *)PyObject_Init((PyObject *)free_handles[--num_free], &Handle_Type);
}

void handle_give_back(Handle *self) {
  if (num_free < MOST_FREE && !PyObject_GC_IsFinalized((PyObject *)self))
    free_handles[num_free++] = self;
  else PyObject_GC_Del(self);
}

/* Takes over the reference to `kind`; the others may be NULL. It is registered if another handle may
 * be one of the same object. */
static Handle *make_of(void *address, PyObject *kind, PyObject *library, PyObject *owner,
                       int is_registered) {
  Handle *self = allocate();
  if (self == NULL) {
    Py_XDECREF(kind);
    return NULL;
  }
  self->address = address;
  self->kind = kind;
  self->library = Py_XNewRef(library);
  self->owner = Py_XNewRef(owner);
  self->release = NULL;
  self->parent = NULL;
  self->weak = self->kept = NULL;
  self->type = NULL;
  self->memory = NULL;
  self->place = NULL;
  self->uses = self->views = self->children = self->is_closed = self->is_waiting = 0;
  self->is_const = self->has_no_type = self->is_ended = 0;
  PyObject_GC_Track(self);
  if (!is_registered || handle_register(self) == 0) return self;
  Py_DECREF(self);
  return raise_no_memory();
}

static Handle *make(void *address, PyObject *kind, PyObject *function) {
  if (function == NULL) return make_of(address, kind, NULL, NULL, 1);
  return make_of(address, kind, function_library(function), function_owner(function), 1);
}

Handle *handle_make_owner(void *address, PyObject *kind, PyObject *library, PyObject *owner) {
  return make_of(address, Py_XNewRef(kind), library, owner, 1);
}

/* So that a walk along a list, whose items belong to the list, makes no chain of parents. */
static void set_parent(Handle *self, Handle *parent) {
  while (parent != NULL && parent->release == NULL && parent->parent != NULL)
    parent = parent->parent;
  self->parent = (Handle *)Py_XNewRef((PyObject *)parent);
  if (parent != NULL) parent->children++;
}

Handle *handle_make_part(Handle *parent, void *address, PyObject *kind, int is_target) {
  Handle *self = make_of(address, Py_XNewRef(kind), parent->library, parent->owner, is_target);
  if (self != NULL) set_parent(self, parent);
  return self;
}

/* The library owns what is found. */
const struct callee *handle_find_release(PyObject *function) {
  const struct callee *callee = function_callee(function);
  if (callee->lazy->release != NULL) return callee->lazy->release;
  PyObject *release = PyObject_CallMethod(function_library(function), "function", "sO",
                                          callee->facts.free, function_owner(function));
  if (release != NULL && function_check(release)) callee->lazy->release = function_callee(release);
  else if (release != NULL)
    PyErr_Format(PyExc_ValueError,
                 "%U: free, expected a function of the library, found '%s'; export it again",
                 callee->name, callee->facts.free);
  Py_XDECREF(release);
  return callee->lazy->release;
}

/* Add the name in the line "free <name>" of a function's metadata to a set; the doc is free text. */
static int add_free(PyObject *names, PyObject *data) {
  const Py_buffer *view = PyMemoryView_GET_BUFFER(data);
  const char *text = view->buf, *doc, *line;
  if (view->len == 0 || text[view->len - 1] != '\0') return 0; /* malformed: it is not callable */
  line = strstr(text, "\nfree ");
  doc = strstr(text, "\ndoc ");
  if (line == NULL || (doc != NULL && doc < line)) return 0;
  line += strlen("\nfree ");
  PyObject *name = PyUnicode_FromStringAndSize(line, (Py_ssize_t)strcspn(line, "\n"));
  int status = name != NULL ? PySet_Add(names, name) : -1;
  Py_XDECREF(name);
  return status;
}

static int add_free_of(PyObject *names, PyObject *library, PyObject *symbol) {
  PyObject *data = PyObject_CallMethod(library, "data", "O", symbol);
  if (data == NULL && PyErr_ExceptionMatches(PyExc_OSError)) { /* malformed, as above */
    PyErr_Clear();
    return 0;
  }
  int status = data == NULL ? -1 : PyMemoryView_Check(data) ? add_free(names, data) : 0;
  Py_XDECREF(data);
  return status;
}

/* Return the set of the functions that the metadata of a library names as `free`. */
static PyObject *free_names(PyObject *library) {
  PyObject *symbols = PyObject_CallMethod(library, "symbols", "s", "__packer_fn_");
  PyObject *names = symbols != NULL ? PySet_New(NULL) : NULL;
  for (Py_ssize_t i = 0; names != NULL && i < PyList_GET_SIZE(symbols); i++)
    if (add_free_of(names, library, PyList_GET_ITEM(symbols, i)) != 0) Py_CLEAR(names);
  Py_XDECREF(symbols);
  return names;
}

/* The symbols of a system library may become more. */
static PyObject *known_free_names(PyObject *library) {
  if (Py_IS_TYPE(library, &SystemLibrary_Type)) return free_names(library);
  PyObject **known = &((Library *)library)->frees;
  return Py_XNewRef(*known != NULL ? *known : lazy_keep(known, free_names(library)));
}

int handle_is_released_by(PyObject *function) {
  const struct callee *callee = function_callee(function);
  PyObject *library = function_library(function);
  if (callee->lazy->releases >= 0) return callee->lazy->releases;
  if (!Py_IS_TYPE(library, &Library_Type) && !Py_IS_TYPE(library, &SystemLibrary_Type)) return 0;
  PyObject *names = known_free_names(library);
  if (names == NULL) return -1;
  callee->lazy->releases = PySet_Contains(names, callee->name);
  Py_DECREF(names);
  return callee->lazy->releases;
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

/* "*f64", "*i32[4]", "**char", "*@foo", "&u8" */
static int is_typed_pointer(const char *code) {
  return code != NULL && (*code == '*' || *code == '&') && code_kind_of(code) != CODE_VOID;
}

PyObject *handle_from_result(PyObject *function, void *address, const char *code, Handle *parent) {
  if (address == NULL) Py_RETURN_NONE;
  const struct callee *callee = function_callee(function);
  const struct callee *release = callee->facts.free != NULL ? callee->lazy->release : NULL;
  PyObject *kind = code != NULL && !is_typed_pointer(code) ? code_kind_name(code) : NULL;
  if (release != NULL && !releases(release, kind)) release = NULL;
  if (kind == NULL && PyErr_Occurred()) return give_up(release, address);
  PyObject *data = kind == NULL ? kept_data_at(address) : NULL;
  if (data != NULL) return data;
  Handle *self = make(address, kind, function);
  if (self == NULL) return give_up(release, address);
  self->release = release;
  self->is_const = callee->facts.returns_const || (code != NULL && *code == '&');
  set_parent(self, parent);
  if (kind == NULL && is_typed_pointer(code) && handle_set_type(self, code) != 0) {
    Py_DECREF(self);
    return NULL;
  }
  return (PyObject *)self;
}

PyObject *handle_borrow(const struct source *source, void *address) {
  if (address == NULL) Py_RETURN_NONE;
  PyObject *data = kept_data_at(address);
  if (data != NULL || PyErr_Occurred()) return data;
  return (PyObject *)make(address, NULL, source->function);
}

/* The library whose functions a library calls for it, or itself. */
static PyObject *origin_of(PyObject *library) {
  if (library == NULL || !Py_IS_TYPE(library, &Library_Type)) return library;
  PyObject *origin = ((Library *)library)->origin;
  return origin != NULL ? origin : library;
}

/* A file that is opened again while its code is in use is another Library, and the same code. */
int handle_same_library(PyObject *one, PyObject *other) {
  if (one == other) return 1;
  one = origin_of(one), other = origin_of(other);
  if (one == other) return 1;
  return one != NULL && other != NULL && Py_IS_TYPE(one, &Library_Type) &&
         Py_IS_TYPE(other, &Library_Type) &&
         ((Library *)one)->loaded.handle == ((Library *)other)->loaded.handle;
}

int handle_is_of(const Handle *self, PyObject *function) {
  return handle_same_library(self->library, function_library(function));
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
  int is_const = 0;
  if (!PyArg_ParseTuple(args, "O!O!O|p:handle_at", &Function_Type, &function, &PyLong_Type,
                        &integer, &kind, &is_const))
    return NULL;
  if (kind != Py_None && !PyUnicode_CheckExact(kind))
    return PyErr_Format(PyExc_TypeError, "handle_at: expected a str or None, found %s",
                        Py_TYPE(kind)->tp_name);
  void *address = PyLong_AsVoidPtr(integer);
  if (address == NULL && PyErr_Occurred()) return NULL;
  if (address == NULL) Py_RETURN_NONE;
  if (kind == Py_None) kind = NULL;
  Py_XINCREF(kind);
  if (kind != NULL) PyUnicode_InternInPlace(&kind);
  Handle *self = make(address, kind, function);
  if (self != NULL) self->is_const = is_const;
  return (PyObject *)self;
}

/* ---- Memory that Python allocates */

enum { MOST_ALIGNED = 16 }; /* memory of Python */

static PyObject *new_memory(PyObject *library, PyObject *owner, CType *type) {
  if (type->alignment > MOST_ALIGNED)
    return PyErr_Format(PyExc_ValueError,
                        "'%S': aligned to %d bytes, expected at most %d; let C code allocate it",
                        type->name, type->alignment, MOST_ALIGNED);
  void *memory = PyMem_Calloc(1, type->size > 0 ? (size_t)type->size : 1);
  if (memory == NULL) return raise_no_memory();
  Handle *self = handle_make_owner(memory, type->name, library, owner);
  if (self == NULL) {
    PyMem_Free(memory);
    return NULL;
  }
  self->memory = memory;
  self->type = (CType *)Py_NewRef((PyObject *)type);
  return (PyObject *)self;
}

PyObject *handle_new(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count) {
  static PyObject *name;
  if (name == NULL && (name = PyUnicode_InternFromString("_library")) == NULL) return NULL;
  PyObject *made = NULL;
  PyObject *library = count == 2 ? PyObject_GetAttr(args[0], name) : NULL;
  PyObject *types = library != NULL ? handle_known_types(library) : NULL;
  PyObject *type =
      types != NULL && PyUnicode_Check(args[1]) ? PyDict_GetItemWithError(types, args[1]) : NULL;
  if (type != NULL && c_type_check(type)) made = new_memory(library, args[0], (CType *)type);
  else if (count == 2 && (library != NULL || PyErr_ExceptionMatches(PyExc_AttributeError)))
    PyErr_Clear();
  Py_XDECREF(library);
  return made != NULL || PyErr_Occurred() ? made : Py_NewRef(Py_None);
}

PyObject *handle_allocate(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *library, *owner;
  CType *type;
  if (!PyArg_ParseTuple(args, "OOO!:handle_allocate", &library, &owner, &CType_Type, &type))
    return NULL;
  if (handle_check(library)) {
    owner = ((Handle *)library)->owner;
    library = ((Handle *)library)->library;
  } else if (function_check(library)) {
    owner = function_owner(library);
    library = function_library(library);
  }
  return new_memory(library, owner, type);
}
