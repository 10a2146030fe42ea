/* The members of handles: attributes, items and methods for the memory that a handle points to. */
#include "python/call/handle_members.h"

#include <string.h>

#include "python/call/member_value.h"
#include "python/exception.h"

/* ---- Arguments */

int handle_has_numbers(Handle *self) {
  const CType *type = self->type;
  while (type != NULL && type->how == C_ARRAY) type = type->target;
  return type != NULL && type->members == NULL && type->format != NULL;
}

int handle_set_type(Handle *self, const char *code) {
  PyObject *types = handle_types(NULL, self->library);
  PyObject *type = types != NULL ? call_members("type_of_code", "(Os)", types, code) : NULL;
  Py_XDECREF(types);
  if (type == NULL || !c_type_check(type)) return -1;
  self->type = (CType *)type;
  self->kind = Py_XNewRef(self->type->name);
  return 0;
}

/* ---- Attributes */

static int require_open(const Handle *self) {
  if (!handle_is_closed(self)) return 0;
  return raise_format(PyExc_ValueError, "%R: expected an open handle; its object was released",
                      self);
}

/* Raise the error that names the members; `is_item` for h["name"]. */
static void raise_no_member(Handle *self, CType *type, PyObject *name, int is_item) {
  PyObject *error = call_members("no_member", "(OOOi)", self, type, name, is_item);
  if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
}

PyObject *handle_getattro(PyObject *object, PyObject *name) {
  Handle *self = (Handle *)object;
  CType *type = handle_type(self);
  if (type == NULL && PyErr_Occurred()) return NULL;
  if (type == NULL || type->attributes == NULL) return PyObject_GenericGetAttr(object, name);
  PyObject *member = PyDict_GetItemWithError(type->attributes, name);
  if (member != NULL) return require_open(self) == 0 ? member_read(self, (CMember *)member) : NULL;
  if (PyErr_Occurred()) return NULL;
  PyObject *found = PyObject_GenericGetAttr(object, name);
  int is_special = PyUnicode_GET_LENGTH(name) > 0 && PyUnicode_READ_CHAR(name, 0) == '_';
  if (found == NULL && !is_special && PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Clear();
    raise_no_member(self, type, name, 0);
  }
  return found;
}

int handle_setattro(PyObject *object, PyObject *name, PyObject *value) {
  Handle *self = (Handle *)object;
  CType *type = handle_type(self);
  if (type == NULL && PyErr_Occurred()) return -1;
  if (type == NULL || type->attributes == NULL) return PyObject_GenericSetAttr(object, name, value);
  PyObject *member = PyDict_GetItemWithError(type->attributes, name);
  if (member != NULL && require_open(self) == 0)
    return member_write(self, (CMember *)member, name, value);
  if (!PyErr_Occurred()) raise_no_member(self, type, name, 0);
  return -1;
}

/* ---- Items: members by name, and the items of arrays */

/* Return the address of an item; `*type` becomes its type. NULL with an exception set. */
static void *item_at(Handle *self, CType **type, PyObject *key) {
  CType *own = *type;
  Py_ssize_t count = own->how == C_ARRAY ? own->count : 1;
  if (!PyIndex_Check(key))
    return PyErr_Format(PyExc_TypeError, "%R: expected an index%s, found %R", self,
                        own->how == C_STRUCT ? " or the name of a member" : "", key);
  Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (index == -1 && PyErr_Occurred()) return NULL;
  if (index < 0) index += count;
  if (index < 0 || index >= count)
    return PyErr_Format(
        PyExc_IndexError, "%R: index %S, expected one of %zd items%s", self, key, count,
        own->how == C_ARRAY ? "" : "; array(n) tells the length of what it points to");
  if (own->how == C_ARRAY) *type = own->target;
  return (char *)self->address + index * (*type)->size;
}

static CMember *member_of(Handle *self, CType *type, PyObject *key) {
  PyObject *member = NULL;
  if (type->members != NULL) member = PyDict_GetItemWithError(type->members, key);
  if (member == NULL && !PyErr_Occurred()) raise_no_member(self, type, key, 1);
  return (CMember *)member;
}

static CType *require_type(Handle *self) {
  if (require_open(self) != 0) return NULL;
  CType *type = handle_type(self);
  if (type == NULL && !PyErr_Occurred())
    PyErr_Format(PyExc_TypeError,
                 "%R: expected a struct whose layout the library has; call its functions", self);
  return type;
}

static PyObject *handle_item(PyObject *object, PyObject *key) {
  Handle *self = (Handle *)object;
  CType *type = require_type(self);
  if (type == NULL) return NULL;
  if (PyUnicode_Check(key)) {
    CMember *member = member_of(self, type, key);
    return member != NULL ? member_read(self, member) : NULL;
  }
  if (PySlice_Check(key)) return call_members("items", "(OO)", self, key);
  char *address = item_at(self, &type, key);
  return address != NULL ? member_read_value(self, type, address, self->is_const) : NULL;
}

static int handle_set_item(PyObject *object, PyObject *key, PyObject *value) {
  Handle *self = (Handle *)object;
  CType *type = require_type(self);
  if (type == NULL) return -1;
  if (PyUnicode_Check(key)) {
    CMember *member = member_of(self, type, key);
    return member != NULL ? member_write(self, member, key, value) : -1;
  }
  if (PySlice_Check(key) && value != NULL) {
    PyObject *done = call_members("set_items", "(OOO)", self, key, value);
    Py_XDECREF(done);
    return done != NULL ? 0 : -1;
  }
  char *address = item_at(self, &type, key);
  if (address == NULL) return -1;
  if (value != NULL && !self->is_const) return member_write_value(self, type, address, key, value);
  return raise_format(PyExc_TypeError, "%R: expected a writable item, found %s", self,
                      value != NULL ? "a const one" : "a deletion");
}

static PyObject *handle_item_at(PyObject *object, Py_ssize_t index) {
  PyObject *key = PyLong_FromSsize_t(index);
  PyObject *item = key != NULL ? handle_item(object, key) : NULL;
  Py_XDECREF(key);
  return item;
}

static Py_ssize_t handle_length(PyObject *object) {
  Handle *self = (Handle *)object;
  CType *type = handle_type(self);
  if (type != NULL && type->how == C_ARRAY) return type->count;
  if (!PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "%R: expected an array, which has a length", self);
  return -1;
}

/* A handle is true, also of an array without items. */
static int handle_bool(PyObject *Py_UNUSED(object)) { return 1; }

PyNumberMethods handle_number = {.nb_bool = handle_bool};
PySequenceMethods handle_sequence = {.sq_item = handle_item_at};
PyMappingMethods handle_mapping = {
    .mp_length = handle_length, .mp_subscript = handle_item, .mp_ass_subscript = handle_set_item};

/* ---- Methods */

PyObject *handle_array(Handle *self, PyObject *argument) {
  CType *type = require_type(self);
  PyObject *array = type != NULL ? call_members("array_type", "(OOO)", self, type, argument) : NULL;
  if (array == NULL) return NULL;
  PyObject *made = handle_part(self, self->address, (CType *)array, self->is_const, 0);
  Py_DECREF(array);
  return made;
}

PyObject *handle_pointer(Handle *self, PyObject *name) {
  CType *type = require_type(self);
  CMember *member = type != NULL ? member_of(self, type, name) : NULL;
  if (member == NULL) return NULL;
  if (member->width != 0)
    return PyErr_Format(PyExc_TypeError,
                        "%R: expected a member with an address, found the bit-field %R", self,
                        name);
  if (member->type->target == NULL || member->type->how == C_ARRAY)
    return handle_part(self, (char *)self->address + member->offset, member->type, self->is_const,
                       0);
  void *target;
  memcpy(&target, (char *)self->address + member->offset, sizeof target);
  if (target == NULL) Py_RETURN_NONE;
  return handle_part(self, target, member->type->target, member->type->is_const, 1);
}

PyObject *handle_dir(PyObject *object, PyObject *Py_UNUSED(none)) {
  CType *type = handle_type((Handle *)object);
  if (type == NULL && PyErr_Occurred()) return NULL;
  PyObject *names = PyObject_CallMethod((PyObject *)&PyBaseObject_Type, "__dir__", "O", object);
  PyObject *members =
      type != NULL && type->attributes != NULL ? PyDict_Keys(type->attributes) : PyList_New(0);
  PyObject *all = names && members ? PySequence_InPlaceConcat(names, members) : NULL;
  Py_XDECREF(names);
  Py_XDECREF(members);
  return all;
}

PyObject *handle_type_of(PyObject *Py_UNUSED(module), PyObject *handle) {
  CType *type = handle_check(handle) ? require_type((Handle *)handle) : NULL;
  if (type == NULL && !PyErr_Occurred())
    PyErr_Format(PyExc_TypeError, "c_type_of: expected a Handle, found %R", handle);
  return Py_XNewRef((PyObject *)type);
}

PyObject *handle_call(PyObject *object, PyObject *args, PyObject *keywords) {
  Handle *self = (Handle *)object;
  if (require_open(self) != 0) return NULL;
  if (!handle_is_function(self))
    return PyErr_Format(PyExc_TypeError,
                        "%R: expected a pointer to a function whose types are known; call it in C",
                        self);
  handle_begin_use(self);
  PyObject *result = call_members("call", "(OOO)", self, args, keywords ? keywords : Py_None);
  handle_end_use(self);
  return result;
}

PyObject *handle_report(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *error, *function;
  if (!PyArg_ParseTuple(args, "OO:report_unraisable", &error, &function)) return NULL;
  PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  PyErr_WriteUnraisable(function);
  Py_RETURN_NONE;
}

PyObject *handle_value(PyObject *Py_UNUSED(module), PyObject *args) {
  Handle *handle;
  CType *type;
  PyObject *bytes;
  if (!PyArg_ParseTuple(args, "O!O!S:c_value", &Handle_Type, &handle, &CType_Type, &type, &bytes))
    return NULL;
  if (PyBytes_GET_SIZE(bytes) < type->size)
    return PyErr_Format(PyExc_ValueError, "c_value: expected %zd bytes", type->size);
  return member_read_value(handle, type, PyBytes_AS_STRING(bytes), 1);
}

PyObject *handle_types_match(PyObject *Py_UNUSED(module), PyObject *args) {
  Handle *one, *other;
  if (!PyArg_ParseTuple(args, "O!O!:handle_types_match", &Handle_Type, &one, &Handle_Type, &other))
    return NULL;
  return PyBool_FromLong(handle_same_library(one->library, other->library));
}
