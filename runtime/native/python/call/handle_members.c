/* The members of handles: values in C memory that are read and written in place.
 *
 * A value that contains others, a struct or an array, is a handle of its place, whose parent is the
 * handle that it was read from; so is the target of a pointer. It cannot outlive the parent, and
 * runtime/structs/members.py converts what is not converted here. */
#include "python/call/handle_members.h"

#include <math.h>
#include <string.h>

#include "python/exception.h"
#include "python/library.h"
#include "python/system_library.h"

/* ---- Types */

/* Call runtime.structs.members.<name>. */
static PyObject *call_members(const char *name, const char *format, ...) {
  PyObject *module = PyImport_ImportModule("runtime.structs.members"); /* imported at first use */
  PyObject *function = module != NULL ? PyObject_GetAttrString(module, name) : NULL;
  Py_XDECREF(module);
  if (function == NULL) return NULL;
  va_list values;
  va_start(values, format);
  PyObject *args = Py_VaBuildValue(format, values);
  va_end(values);
  PyObject *made = args != NULL ? PyObject_Call(function, args, NULL) : NULL;
  Py_XDECREF(args);
  Py_DECREF(function);
  return made;
}

/* The place of a library's types; NULL if it has none. */
static PyObject **types_of(PyObject *library) {
  if (Py_IS_TYPE(library, &Library_Type)) return &((Library *)library)->types;
  return Py_IS_TYPE(library, &SystemLibrary_Type) ? system_library_types(library) : NULL;
}

PyObject *handle_types(PyObject *Py_UNUSED(module), PyObject *library) {
  PyObject **types = types_of(library);
  if (types == NULL) return PyDict_New();
  if (*types == NULL && lazy_keep(types, call_members("types_of", "(O)", library)) == NULL)
    return NULL;
  return Py_NewRef(*types);
}

/* Return the type, borrowed; NULL, possibly with an exception set, if it is unknown. */
static CType *look_up_type(Handle *self) {
  if (self->has_no_type || self->kind == NULL || self->library == NULL) return NULL;
  PyObject *types = handle_types(NULL, self->library);
  if (types == NULL) return NULL;
  PyObject *type = PyDict_Check(types) ? PyDict_GetItemWithError(types, self->kind) : NULL;
  if (type != NULL && c_type_check(type)) self->type = (CType *)Py_NewRef(type);
  else self->has_no_type = !PyErr_Occurred();
  Py_DECREF(types);
  return self->type;
}

static inline CType *type_of(Handle *self) {
  return self->type != NULL ? self->type : look_up_type(self);
}

/* ---- Parts */

static Handle *root_of(Handle *self) {
  while (self->parent != NULL) self = self->parent;
  return self;
}

static PyObject *part(Handle *parent, void *address, CType *type, int is_const, int is_target) {
  Handle *self = handle_make_part(parent, address, type->name, is_target);
  if (self == NULL) return NULL;
  if (type->how != C_OPAQUE) self->type = (CType *)Py_NewRef((PyObject *)type);
  self->is_const = is_const;
  return (PyObject *)self;
}

static PyObject *text_of(const char *text, size_t length) {
  PyObject *string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, NULL);
  if (string != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return string;
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError,
               "text of %zu bytes, expected UTF-8; pointer(name).array(n) reads a member's bytes",
               length);
  return NULL;
}

static PyObject *text_at(const char *text) {
  if (text == NULL) Py_RETURN_NONE;
  return text_of(text, strlen(text));
}

/* ---- Reading */

static PyObject *float_of(long double number) { return PyFloat_FromDouble((double)number); }

#define NUMBER(letter, type, make)         \
  case letter: {                           \
    type value;                            \
    memcpy(&value, address, sizeof value); \
    return make(value);                    \
  }

static PyObject *read_value(Handle *parent, CType *type, char *address, int is_const) {
  switch (type->how) {
    NUMBER('i', int32_t, PyLong_FromLong)
    NUMBER('d', double, PyFloat_FromDouble)
    NUMBER('b', int8_t, PyLong_FromLong)
    NUMBER('h', int16_t, PyLong_FromLong)
    NUMBER('q', int64_t, PyLong_FromLong)
    NUMBER('B', uint8_t, PyLong_FromUnsignedLong)
    NUMBER('H', uint16_t, PyLong_FromUnsignedLong)
    NUMBER('I', uint32_t, PyLong_FromUnsignedLong)
    NUMBER('Q', uint64_t, PyLong_FromUnsignedLong)
    NUMBER('?', uint8_t, PyBool_FromLong)
    NUMBER('f', float, PyFloat_FromDouble)
    NUMBER(C_LONGDOUBLE, long double, float_of)
    NUMBER(C_TEXT, const char *, text_at)
    case C_CONVERTED: return call_members("decode", "(Oy#)", type->code, address, type->size);
    case C_POINTER: {
      void *target;
      memcpy(&target, address, sizeof target);
      if (target == NULL) Py_RETURN_NONE;
      return part(parent, target, type->target, type->is_const, 1);
    }
    case C_STRUCT:
    case C_ARRAY: return part(parent, address, type, is_const, 0);
    case C_CHARS: return text_of(address, strnlen(address, (size_t)type->size));
    default:
      PyErr_Format(PyExc_TypeError, "%R: expected a value of a known type, found %S", parent,
                   type->code);
      return NULL;
  }
}

/* The bits as an unsigned number: the integer need not contain them in one word, but its size does. */
static uint64_t bits_of(const CMember *member, const char *address) {
  uint64_t word = 0;
  memcpy(&word, address, (size_t)member->type->size);
  uint64_t mask = member->width < 64 ? (1ull << member->width) - 1 : ~0ull;
  return word >> member->bit & mask;
}

static int is_signed(const CType *type) {
  return type->how == 'b' || type->how == 'h' || type->how == 'i' || type->how == 'q';
}

static PyObject *read_member(Handle *self, const CMember *member) {
  char *address = (char *)self->address + member->offset;
  if (member->width == 0) return read_value(self, member->type, address, self->is_const);
  uint64_t bits = bits_of(member, address);
  if (member->type->how == '?') return PyBool_FromLong(bits != 0);
  if (!is_signed(member->type)) return PyLong_FromUnsignedLong(bits);
  int unused = 64 - member->width;
  return PyLong_FromLong((int64_t)(bits << unused) >> unused);
}

/* ---- Writing. `where` is the name of the member, or the index, for messages. */

static int refuse_value(const CType *type, PyObject *where, PyObject *value) {
  PyErr_Clear();
  PyObject *error = call_members("refused", "(OOO)", type->code, where, value);
  if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
  return -1;
}

static int write_integer(const CType *type, char *address, PyObject *where, PyObject *value) {
  int overflow = 0;
  PyObject *integer = PyLong_CheckExact(value) ? Py_NewRef(value) : PyNumber_Index(value);
  if (integer == NULL) return refuse_value(type, where, value);
  long long number = PyLong_AsLongLongAndOverflow(integer, &overflow);
  uint64_t wide = (uint64_t)number;
  int bits = 8 * (int)type->size, is_wide = 0;
  if (overflow > 0 && type->how == 'Q') {
    wide = PyLong_AsUnsignedLongLong(integer);
    is_wide = !PyErr_Occurred();
  }
  Py_DECREF(integer);
  int fits = is_wide;
  if (overflow == 0 && is_signed(type))
    fits = bits == 64 || (number >= -(1ll << (bits - 1)) && number < 1ll << (bits - 1));
  else if (overflow == 0)
    fits = number >= 0 && (type->how == '?' ? number < 2 : bits == 64 || number < 1ll << bits);
  if (!fits) return refuse_value(type, where, value);
  memcpy(address, &wide, (size_t)type->size); /* a little-endian machine */
  return 0;
}

static int write_float(const CType *type, char *address, PyObject *where, PyObject *value) {
  double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred()) return refuse_value(type, where, value);
  float single = (float)number;
  if (type->how == 'f' && isfinite(number) && !isfinite(single))
    return refuse_value(type, where, value);
  long double wide = number;
  if (type->how == 'f') memcpy(address, &single, sizeof single);
  else if (type->how == 'd') memcpy(address, &number, sizeof number);
  else memcpy(address, &wide, sizeof wide);
  return 0;
}

static int write_bytes(const CType *type, char *address, PyObject *bytes) {
  if (bytes == NULL) return -1;
  int is_right = PyBytes_Check(bytes) && PyBytes_GET_SIZE(bytes) == type->size;
  if (is_right) memcpy(address, PyBytes_AS_STRING(bytes), (size_t)type->size);
  else PyErr_SetString(PyExc_SystemError, "members.encode: expected the bytes of the value");
  Py_DECREF(bytes);
  return is_right ? 0 : -1;
}

/* Keep what a pointer in the memory refers to, as long as the handle of the whole object. */
static int keep(Handle *self, const char *address, PyObject *object) {
  Handle *root = root_of(self);
  PyObject *key = PyLong_FromVoidPtr((void *)(uintptr_t)address);
  if (key == NULL) return -1;
  if (root->kept == NULL) root->kept = PyDict_New();
  int status = root->kept != NULL ? PyDict_SetItem(root->kept, key, object) : -1;
  Py_DECREF(key);
  return status;
}

/* (address, what it refers to) */
static int write_pointer(Handle *self, const CType *type, char *address, PyObject *where,
                         PyObject *value) {
  Handle *root = root_of(self);
  PyObject *made, *kept;
  void *target = NULL;
  if (value == Py_None) {
    memcpy(address, &target, sizeof target);
    return root->kept != NULL ? keep(self, address, Py_None) : 0;
  }
  made = call_members("pointer_to", "(OOOOi)", self, type, where, value, root->memory != NULL);
  if (made == NULL) return -1;
  unsigned long long number = 0;
  int status = PyArg_ParseTuple(made, "KO:pointer_to", &number, &kept) ? 0 : -1;
  target = (void *)(uintptr_t)number;
  if (status == 0) status = keep(self, address, kept);
  if (status == 0) memcpy(address, &target, sizeof target);
  Py_DECREF(made);
  return status;
}

/* A struct of the same type is copied, with what it keeps; others are assigned by members. */
static int write_whole(Handle *self, CType *type, char *address, PyObject *where, PyObject *value) {
  PyObject *place = part(self, address, type, 0, 0);
  PyObject *done = place ? call_members("assign", "(OOOO)", place, type, where, value) : NULL;
  Py_XDECREF(place);
  Py_XDECREF(done);
  return done != NULL ? 0 : -1;
}

static int write_value(Handle *self, CType *type, char *address, PyObject *where, PyObject *value) {
  switch (type->how) {
    case 'd':
    case 'f':
    case C_LONGDOUBLE: return write_float(type, address, where, value);
    case C_CONVERTED:
      return write_bytes(type, address, call_members("encode", "(OOO)", type->code, where, value));
    case C_TEXT:
    case C_POINTER: return write_pointer(self, type, address, where, value);
    case C_STRUCT:
    case C_CHARS:
    case C_ARRAY: return write_whole(self, type, address, where, value);
    case C_OPAQUE: return refuse_value(type, where, value);
    default: return write_integer(type, address, where, value);
  }
}

static int write_bits(const CMember *member, char *address, PyObject *where, PyObject *value) {
  int64_t number = 0;
  char whole[sizeof number] = {0};
  CType wide = *member->type;
  if (write_integer(&wide, whole, where, value) != 0) return -1;
  uint64_t word = 0, mask = member->width < 64 ? (1ull << member->width) - 1 : ~0ull;
  memcpy(&word, whole, (size_t)wide.size);
  int unused = 64 - 8 * (int)wide.size, spare = 64 - member->width;
  number = is_signed(&wide) ? (int64_t)(word << unused) >> unused : (int64_t)word;
  int fits = is_signed(&wide) ? (int64_t)((uint64_t)number << spare) >> spare == number
                              : ((uint64_t)number & ~mask) == 0;
  if (!fits) return refuse_value(member->type, where, value);
  memcpy(&word, address, (size_t)wide.size);
  word = (word & ~(mask << member->bit)) | ((uint64_t)number & mask) << member->bit;
  memcpy(address, &word, (size_t)wide.size);
  return 0;
}

static int write_member(Handle *self, const CMember *member, PyObject *name, PyObject *value) {
  char *address = (char *)self->address + member->offset;
  if (value == NULL) {
    PyErr_Format(PyExc_TypeError, "%R: member '%U' cannot be deleted", self, name);
    return -1;
  }
  if (self->is_const) {
    PyErr_Format(PyExc_TypeError, "%R: member '%U': expected a writable struct, found a const one",
                 self, name);
    return -1;
  }
  if (member->width != 0) return write_bits(member, address, name, value);
  return write_value(self, member->type, address, name, value);
}

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
  PyErr_Format(PyExc_ValueError, "%R: expected an open handle; its object was released", self);
  return -1;
}

/* Raise the error that names the members; `is_item` for h["name"]. */
static void raise_no_member(Handle *self, CType *type, PyObject *name, int is_item) {
  PyObject *error = call_members("no_member", "(OOOi)", self, type, name, is_item);
  if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_XDECREF(error);
}

PyObject *handle_getattro(PyObject *object, PyObject *name) {
  Handle *self = (Handle *)object;
  CType *type = type_of(self);
  if (type == NULL && PyErr_Occurred()) return NULL;
  if (type == NULL || type->attributes == NULL) return PyObject_GenericGetAttr(object, name);
  PyObject *member = PyDict_GetItemWithError(type->attributes, name);
  if (member != NULL) return require_open(self) == 0 ? read_member(self, (CMember *)member) : NULL;
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
  CType *type = type_of(self);
  if (type == NULL && PyErr_Occurred()) return -1;
  if (type == NULL || type->attributes == NULL) return PyObject_GenericSetAttr(object, name, value);
  PyObject *member = PyDict_GetItemWithError(type->attributes, name);
  if (member != NULL && require_open(self) == 0)
    return write_member(self, (CMember *)member, name, value);
  if (!PyErr_Occurred()) raise_no_member(self, type, name, 0);
  return -1;
}

/* ---- Items: members by name, and the items of arrays */

/* Return the address of an item; `*type` becomes its type. NULL with an exception set. */
static char *item_at(Handle *self, CType **type, PyObject *key) {
  CType *own = *type;
  Py_ssize_t count = own->how == C_ARRAY ? own->count : 1;
  if (!PyIndex_Check(key)) {
    PyErr_Format(PyExc_TypeError, "%R: expected an index%s, found %R", self,
                 own->how == C_STRUCT ? " or the name of a member" : "", key);
    return NULL;
  }
  Py_ssize_t index = PyNumber_AsSsize_t(key, PyExc_IndexError);
  if (index == -1 && PyErr_Occurred()) return NULL;
  if (index < 0) index += count;
  if (index < 0 || index >= count) {
    PyErr_Format(PyExc_IndexError, "%R: index %S, expected one of %zd items%s", self, key, count,
                 own->how == C_ARRAY ? "" : "; array(n) tells the length of what it points to");
    return NULL;
  }
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
  CType *type = type_of(self);
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
    return member != NULL ? read_member(self, member) : NULL;
  }
  if (PySlice_Check(key)) return call_members("items", "(OO)", self, key);
  char *address = item_at(self, &type, key);
  return address != NULL ? read_value(self, type, address, self->is_const) : NULL;
}

static int handle_set_item(PyObject *object, PyObject *key, PyObject *value) {
  Handle *self = (Handle *)object;
  CType *type = require_type(self);
  if (type == NULL) return -1;
  if (PyUnicode_Check(key)) {
    CMember *member = member_of(self, type, key);
    return member != NULL ? write_member(self, member, key, value) : -1;
  }
  char *address = item_at(self, &type, key);
  if (address == NULL) return -1;
  if (value != NULL && !self->is_const) return write_value(self, type, address, key, value);
  PyErr_Format(PyExc_TypeError, "%R: expected a writable item, found %s", self,
               value != NULL ? "a const one" : "a deletion");
  return -1;
}

static PyObject *handle_item_at(PyObject *object, Py_ssize_t index) {
  PyObject *key = PyLong_FromSsize_t(index);
  PyObject *item = key != NULL ? handle_item(object, key) : NULL;
  Py_XDECREF(key);
  return item;
}

static Py_ssize_t handle_length(PyObject *object) {
  Handle *self = (Handle *)object;
  CType *type = type_of(self);
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
  PyObject *array = type != NULL ? call_members("array_type", "(OO)", type, argument) : NULL;
  if (array == NULL) return NULL;
  PyObject *made = part(self, self->address, (CType *)array, self->is_const, 0);
  Py_DECREF(array);
  return made;
}

PyObject *handle_pointer(Handle *self, PyObject *name) {
  CType *type = require_type(self);
  CMember *member = type != NULL ? member_of(self, type, name) : NULL;
  if (member == NULL) return NULL;
  if (member->type->target == NULL || member->type->how == C_ARRAY)
    return PyErr_Format(PyExc_TypeError, "%R: expected a member that is a pointer, found %R", self,
                        name);
  void *target;
  memcpy(&target, (char *)self->address + member->offset, sizeof target);
  if (target == NULL) Py_RETURN_NONE;
  return part(self, target, member->type->target, member->type->is_const, 1);
}

PyObject *handle_dir(PyObject *object, PyObject *Py_UNUSED(none)) {
  CType *type = type_of((Handle *)object);
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

PyObject *handle_types_match(PyObject *Py_UNUSED(module), PyObject *args) {
  Handle *one, *other;
  if (!PyArg_ParseTuple(args, "O!O!:handle_types_match", &Handle_Type, &one, &Handle_Type, &other))
    return NULL;
  return PyBool_FromLong(handle_same_library(one->library, other->library));
}

PyObject *handle_allocate(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *library, *owner;
  CType *type;
  if (!PyArg_ParseTuple(args, "OOO!:handle_allocate", &library, &owner, &CType_Type, &type))
    return NULL;
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

/* ---- The memory as a buffer. A view counts as a use, so that nothing releases the object. */

enum { MOST_DIMS = 32 };

static int handle_get_buffer(PyObject *object, Py_buffer *view, int flags) {
  Handle *self = (Handle *)object;
  view->obj = NULL;
  CType *type = handle_is_closed(self) ? NULL : type_of(self), *item = type;
  int ndim = 0;
  while (item != NULL && item->how == C_ARRAY && ndim < MOST_DIMS) item = item->target, ndim++;
  if (item == NULL || item->format == NULL || item->size == 0) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_BufferError, "%R: expected a struct or numbers with a known layout", self);
    return -1;
  }
  if ((flags & PyBUF_WRITABLE) && self->is_const) {
    PyErr_Format(PyExc_BufferError, "%R: expected writable memory, found const", self);
    return -1;
  }
  Py_ssize_t *dims = PyMem_New(Py_ssize_t, 2 * (size_t)ndim + 1);
  if (dims == NULL) {
    raise_no_memory();
    return -1;
  }
  int i = 0;
  for (CType *of = type; of != item; of = of->target, i++) {
    dims[i] = of->count;
    dims[ndim + i] = of->target->size;
  }
  handle_begin_use(self);
  for (Handle *of = self; of != NULL; of = of->parent) of->views++;
  *view = (Py_buffer){.buf = self->address,
                      .obj = Py_NewRef(object),
                      .len = type->size,
                      .readonly = self->is_const,
                      .internal = dims};
  view->itemsize = item->size;
  view->ndim = flags & PyBUF_ND ? ndim : type == item ? 0 : 1;
  view->format = flags & PyBUF_FORMAT ? PyBytes_AS_STRING(item->format) : NULL;
  view->shape = flags & PyBUF_ND ? dims : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? dims + ndim : NULL;
  return 0;
}

static void handle_release_buffer(PyObject *object, Py_buffer *view) {
  handle_end_use((Handle *)object);
  for (Handle *of = (Handle *)object; of != NULL; of = of->parent) of->views--;
  PyMem_Free(view->internal);
}

PyBufferProcs handle_buffer = {handle_get_buffer, handle_release_buffer};
