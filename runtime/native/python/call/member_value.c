/* Values in C memory that a handle points to: read and written by their types.
 *
 * A value that contains others, a struct or an array, is a handle of its place, whose parent is the
 * handle that it was read from; so is the target of a pointer. It cannot outlive the parent, and
 * runtime/structs/members.py converts what is not converted here. */
#include "python/call/member_value.h"

#include <math.h>
#include <string.h>

#include "python/call/function.h"
#include "python/exception.h"
#include "python/library.h"
#include "python/system_library.h"

/* ---- Types */

/* Call runtime.structs.members.<name>. */
PyObject *call_members(const char *name, const char *format, ...) {
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

PyObject *handle_known_types(PyObject *library) {
  PyObject **types = types_of(library);
  return types != NULL && *types != NULL && PyDict_Check(*types) ? *types : NULL;
}

PyObject *handle_types(PyObject *Py_UNUSED(module), PyObject *library) {
  if (handle_check(library)) library = ((Handle *)library)->library;
  if (function_check(library)) library = function_library(library);
  PyObject **types = types_of(library);
  if (types == NULL) return PyDict_New();
  if (*types == NULL && lazy_keep(types, call_members("types_of", "(O)", library)) == NULL)
    return NULL;
  return Py_NewRef(*types);
}

/* Return the type, borrowed; NULL, possibly with an exception set, if it is unknown. */
CType *handle_look_up_type(Handle *self) {
  if (self->has_no_type || self->kind == NULL || self->library == NULL) return NULL;
  PyObject *types = handle_types(NULL, self->library);
  if (types == NULL) return NULL;
  PyObject *type = PyDict_Check(types) ? PyDict_GetItemWithError(types, self->kind) : NULL;
  if (type != NULL && c_type_check(type)) self->type = (CType *)Py_NewRef(type);
  else self->has_no_type = !PyErr_Occurred();
  Py_DECREF(types);
  return self->type;
}

/* ---- Parts */

static Handle *root_of(Handle *self) {
  while (self->parent != NULL) self = self->parent;
  return self;
}

PyObject *handle_part(Handle *parent, void *address, CType *type, int is_const, int is_target) {
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
  return PyErr_Format(
      PyExc_ValueError,
      "text of %zu bytes, expected UTF-8; pointer(name).array(n) reads a member's bytes", length);
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

PyObject *member_read_value(Handle *parent, CType *type, char *address, int is_const) {
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
      return handle_part(parent, target, type->target, type->is_const, 1);
    }
    case C_STRUCT:
    case C_ARRAY: return handle_part(parent, address, type, is_const, 0);
    case C_CHARS: return text_of(address, strnlen(address, (size_t)type->size));
    default:
      return PyErr_Format(PyExc_TypeError, "%R: expected a value of a known type, found %S", parent,
                          type->code);
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

PyObject *member_read(Handle *self, const CMember *member) {
  char *address = (char *)self->address + member->offset;
  if (member->width == 0) return member_read_value(self, member->type, address, self->is_const);
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
  PyObject *place = handle_part(self, address, type, 0, 0);
  PyObject *done = place ? call_members("assign", "(OOOO)", place, type, where, value) : NULL;
  Py_XDECREF(place);
  Py_XDECREF(done);
  return done != NULL ? 0 : -1;
}

int member_write_value(Handle *self, CType *type, char *address, PyObject *where, PyObject *value) {
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

int member_write(Handle *self, const CMember *member, PyObject *name, PyObject *value) {
  char *address = (char *)self->address + member->offset;
  if (value == NULL)
    return raise_format(PyExc_TypeError, "%R: member '%U' cannot be deleted", self, name);
  if (self->is_const)
    return raise_format(PyExc_TypeError,
                        "%R: member '%U': expected a writable struct, found a const one", self,
                        name);
  if (member->width != 0) return write_bits(member, address, name, value);
  return member_write_value(self, member->type, address, name, value);
}
