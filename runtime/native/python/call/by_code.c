/* Arguments by the code of their parameter: strings, complex numbers and structs. */
#include "python/call/convert.h"

#include <string.h>

#include "abi/dtype.h"
#include "abi/object.h"
#include "abi/strides.h"
#include "python/call/handle.h"
#include "python/exception.h"
#include "vm/object.h"

/* NumPy's complex128 has a mark in its real part. */
static int pass_complex(struct call_frame *frame, Py_ssize_t index, Py_complex number,
                        int is_typed) {
  dso_array_object *array = array_object_new(2);
  if (array == NULL) return as_status(raise_no_memory());
  array->items[0] = (dso_any){.type_index = DSO_FLOAT, .v_float64 = number.real};
  if (is_typed) array->items[0].small_len = frame_mark_of(frame, index, DTYPE_FLOAT, 64);
  array->items[1] = (dso_any){.type_index = DSO_FLOAT, .v_float64 = number.imag};
  frame_hold(frame, HOLD_OBJECT)->object = &array->object;
  return frame_pass(frame, index, DSO_ARRAY, array);
}

/* Arrays have `__complex__` too, and a length. */
static int is_number(PyObject *object) {
  return PyComplex_Check(object) || (!PyObject_HasAttrString(object, "__len__") &&
                                     PyObject_HasAttrString(object, "__complex__"));
}

static int argument_complex(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  if (PyTuple_Check(object) || PyList_Check(object)) return argument_sequence(frame, index, object);
  if (!is_number(object)) return 1;
  Py_complex number = PyComplex_AsCComplex(object);
  if (number.real == -1.0 && PyErr_Occurred()) return -1;
  return pass_complex(frame, index, number, PyObject_CheckBuffer(object));
}

/* Any value, of a function that chooses by the types of its arguments. */
static int argument_any(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  if (PyTuple_Check(object) || PyList_Check(object)) return argument_sequence(frame, index, object);
  return PyComplex_Check(object) ? argument_complex(frame, index, object) : 1;
}

/* Call runtime.structs.<name>(function, index, object). */
static PyObject *call_structs(struct call_frame *frame, const char *name, Py_ssize_t index,
                              PyObject *object) {
  PyObject *structs = PyImport_ImportModule("runtime.structs"); /* imported at first use */
  PyObject *made =
      structs ? PyObject_CallMethod(structs, name, "OnO", frame->function, index, object) : NULL;
  Py_XDECREF(structs);
  return made;
}

/* Return the number of fields of the struct that `code` names, "{point}"; 0 if it is unknown. */
static Py_ssize_t num_fields(const struct facts *facts, const char *code) {
  size_t length = strlen(code) - 2;
  Py_ssize_t count = 0;
  for (int i = 0; i < facts->num_structs; i++) {
    const struct param *layout = &facts->structs[i];
    if (strncmp(layout->name, code + 1, length) != 0 || layout->name[length] != '\0') continue;
    for (const char *text = layout->code; *text != '\0'; text++) count += *text == ':';
    break;
  }
  return count;
}

/* Return true for a tuple of numbers: the fields of a struct as they are, the common case. */
static int is_plain_tuple(const struct facts *facts, const char *code, PyObject *object) {
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != num_fields(facts, code)) return 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); i++) {
    PyObject *item = PyTuple_GET_ITEM(object, i);
    if (!PyFloat_CheckExact(item) && !PyLong_CheckExact(item) && !PyBool_Check(item)) return 0;
  }
  return 1;
}

/* A struct by value is an array of its fields, which owns them. */
static int argument_struct(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  const struct callee *callee = frame->callee;
  if (is_plain_tuple(&callee->facts, callee_param(callee, index)->code, object))
    return argument_sequence(frame, index, object);
  PyObject *fields = call_structs(frame, "fields_of", index, object);
  if (fields == NULL) return -1;
  int status = PyTuple_Check(fields) ? argument_sequence(frame, index, fields) : 1;
  Py_DECREF(fields);
  return status;
}

static int pass_bytes(struct call_frame *frame, Py_ssize_t index, PyObject *packed) {
  enum code_kind kind = callee_param(frame->callee, index)->kind;
  int is_pointers = kind == CODE_POINTERS;
  if (handles_begin_use(frame, index, PyTuple_GET_ITEM(packed, 1)) != 0) return -1;
  struct hold *hold = frame_hold(frame, HOLD_PACKED);
  hold->packed = Py_NewRef(packed);
  const Py_buffer *view = PyMemoryView_GET_BUFFER(PyTuple_GET_ITEM(packed, 0));
  if (PyTuple_GET_ITEM(packed, 2) != Py_None) frame->needs_release |= FINISH;
  if (kind == CODE_HANDLE) return frame_pass(frame, index, DSO_OPAQUE_PTR, view->buf);
  if (hold_dims(frame, index, hold, view->ndim) != 0) return -1;
  hold->tensor.data = view->buf;
  hold->tensor.device = (DLDevice){.device_type = DLPACK_CPU, .device_id = 0};
  hold->tensor.dtype = is_pointers ? (DLDataType){.code = DTYPE_HANDLE, .bits = 64, .lanes = 1}
                                   : (DLDataType){.code = DTYPE_UINT, .bits = 8, .lanes = 1};
  hold->tensor.byte_offset = 0;
  for (int i = 0; i < view->ndim; i++) hold->tensor.shape[i] = view->shape[i];
  strides_set(&hold->tensor);
  return frame_pass(frame, index, DSO_DLTENSOR_PTR, &hold->tensor);
}

/* A pointer to a struct is a tensor of its bytes, and so is one whose bytes are passed; a list of
 * pointers is a tensor of these. Objects that have plain bytes need no packing. */
static int argument_struct_pointer(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  if (PyByteArray_Check(object) || PyMemoryView_Check(object)) return 1;
  PyObject *packed = call_structs(frame, "packed", index, object);
  if (packed == NULL) return -1;
  int status = PyTuple_Check(packed) ? pass_bytes(frame, index, packed) : 1;
  Py_DECREF(packed);
  return status;
}

/* C expects a NUL after the text: a copy has one. */
static int argument_text(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  if (!PyByteArray_Check(object) && !PyMemoryView_Check(object)) return 1;
  PyObject *bytes = PyBytes_FromObject(object);
  if (bytes == NULL) return -1;
  dso_object *copy =
      object_new_string(DSO_BYTES, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
  Py_DECREF(bytes);
  if (copy == NULL) return as_status(raise_no_memory());
  frame_hold(frame, HOLD_OBJECT)->object = copy;
  return frame_pass(frame, index, DSO_BYTES, copy);
}

int argument_wide_text(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  PyObject *characters = call_structs(frame, "wide_text", index, object);
  if (characters == NULL) return -1;
  int is_text = PyMemoryView_Check(characters);
  int status = is_text ? argument_buffer(frame, index, characters) : 1;
  Py_DECREF(characters);
  return status;
}

int argument_by_code(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  const struct param *param = callee_param(frame->callee, index);
  if (frame->takes_any) return argument_any(frame, index, object);
  if (frame->arrays != NULL && PyComplex_Check(object)) /* an item of a tuple or list */
    return argument_complex(frame, index, object);
  switch (param != NULL ? param->kind : CODE_PLAIN) {
    case CODE_STRINGS:
      if (Py_IS_TYPE(object, &Handle_Type)) return argument_struct_pointer(frame, index, object);
      if (!PyTuple_Check(object) && !PyList_Check(object)) return 1;
      return argument_sequence(frame, index, object);
    case CODE_COMPLEX: return argument_complex(frame, index, object);
    case CODE_TEXT: return argument_text(frame, index, object);
    case CODE_ANY: return argument_any(frame, index, object);
    case CODE_STRUCT: return argument_struct(frame, index, object);
    case CODE_HANDLE:
      return PyDict_Check(object) ? argument_struct_pointer(frame, index, object) : 1;
    case CODE_VALUE:
    case CODE_POINTERS:
    case CODE_STRUCT_POINTER: return argument_struct_pointer(frame, index, object);
    default: return 1;
  }
}

int refuse_constant(struct call_frame *frame, Py_ssize_t index, const char *type) {
  return raise_argument_error(frame, index, PyExc_TypeError,
                              "expected a writable buffer, found %s, which is constant; pass a "
                              "bytearray or a NumPy array",
                              type);
}

int callee_fills_bytes(const struct callee *callee, Py_ssize_t index) {
  const struct param *param = callee_param(callee, index);
  if (param == NULL || param->code[0] != '*') return 0;
  return param->kind == CODE_BYTES || param->kind == CODE_VOID ||
         param->kind == CODE_STRUCT_POINTER;
}
