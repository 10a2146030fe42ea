/* The conversion of arguments: from Python objects to safe-call values.
 *
 * The order of conversion. The first row that matches decides. One file, to inline the first rows.
 *
 *   exact type              becomes
 *   int                     DSO_INT; beyond int64 as uint64 bits, if the parameter is declared u64
 *   float                   DSO_FLOAT
 *   numpy.ndarray           DSO_DLTENSOR_PTR, read from its struct (ndarray.c)
 *   bool                    DSO_BOOL
 *   None                    DSO_NONE
 *   str                     DSO_RAW_STR, borrowed from the str
 *   bytes                   DSO_BYTE_ARRAY_PTR, borrowed from the bytes
 *   Function                DSO_FUNCTION: the object that a library returned, else a new callback
 *   def, method, builtin    DSO_FUNCTION: a new callback object (callback.c)
 *
 *   type or protocol        becomes
 *   Handle                  DSO_OPAQUE_PTR, if it has the parameter's kind and is open
 *   declared code           strings, complex numbers and structs (by_code.c)
 *   Tensor                  DSO_TENSOR if it has an object, else DSO_DLTENSOR_PTR
 *   Device                  DSO_DEVICE
 *   DLPack's exchange API   DSO_DLTENSOR_PTR (exchange.c); if that fails, the later rows are tried
 *   numpy.ndarray           as above; only the first array, whose type is then recognised
 *   int, float, str, bytes  as the exact type, for subclasses
 *   tuple, list             DSO_ARRAY of owned items (sequence.c); TypeError if declared
 *   scalar                  DSO_INT, DSO_FLOAT or DSO_BOOL: __index__ or __float__, and no length
 *   buffer protocol         DSO_DLTENSOR_PTR (array.c)
 *   __dlpack__              DSO_DLTENSOR_PTR (array.c)
 *   Module                  DSO_MODULE: a new callback object
 *   other callable          DSO_FUNCTION: a new callback object
 *   anything else           TypeError */
#include "python/call/kept.h"
#include "python/call/convert.h"

#include <string.h>

#include "python/call/callback.h"
#include "python/device.h"
#include "abi/dtype.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "python/call/handle.h"
#include "python/tensor/tensor.h"

static int set_int(dso_any *arg, int64_t value) {
  arg->type_index = DSO_INT;
  arg->small_len = 0;
  arg->v_int64 = value;
  return 0;
}

static int set_float(dso_any *arg, double value) {
  arg->type_index = DSO_FLOAT;
  arg->small_len = 0;
  arg->v_float64 = value;
  return 0;
}

static int set_bool(dso_any *arg, int value) {
  arg->type_index = DSO_BOOL;
  arg->small_len = 0;
  arg->v_int64 = value;
  return 0;
}

/* Return 1 if the code is a floating or complex type: "f64", "bf16", "c64", ... */
static int is_floating(const char *code) {
  if (code[0] == 'f') return code[1] != 'n';
  return code[0] == 'c' ? code[1] != 'h' : strcmp(code, "bf16") == 0;
}

/* An int beyond int64 is passed as uint64 bits if the parameter is declared as uint64, and rounded
 * if it is declared as a floating type. */
static int set_wide_int(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  const struct param *param = callee_param(frame->callee, index);
  const char *code = param != NULL ? param->code : frame->takes_any ? "any" : "i64";
  int is_u64 = strcmp(code, "u64") == 0 || strcmp(code, "any") == 0;
  if (is_floating(code)) {
    double value = PyLong_AsDouble(object);
    if (value != -1.0 || !PyErr_Occurred()) return set_float(&frame->args[index], value);
    PyErr_Clear();
  } else if (is_u64) {
    unsigned long long value = PyLong_AsUnsignedLongLong(object);
    if (!PyErr_Occurred()) {
      set_int(&frame->args[index], (int64_t)value);
      frame->args[index].small_len = DSO_UNSIGNED;
      return 0;
    }
    PyErr_Clear();
  }
  const char *expected = is_floating(code) ? "a double" : is_u64 ? "a uint64" : "an int64";
  return raise_argument_error(frame, index, PyExc_OverflowError,
                              "out of range, expected %s, found %R", expected, object);
}

/* Read an int of one digit, the common case, without a function call: 1, or 0 for longer ints. */
static int is_compact_int(PyObject *object, int64_t *value) {
#if PY_VERSION_HEX >= 0x030C0000
  if (!PyUnstable_Long_IsCompact((PyLongObject *)object)) return 0;
  *value = PyUnstable_Long_CompactValue((PyLongObject *)object);
#else
  Py_ssize_t size = Py_SIZE(object); /* negative for a negative int */
  if (size < -1 || size > 1) return 0;
  *value = size == 0 ? 0 : size * (int64_t)((PyLongObject *)object)->ob_digit[0];
#endif
  return 1;
}

static int convert_long_int(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) return set_wide_int(frame, index, object);
  return set_int(&frame->args[index], value);
}

static inline int convert_int(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  int64_t compact;
  if (is_compact_int(object, &compact)) return set_int(&frame->args[index], compact);
  return convert_long_int(frame, index, object);
}

/* Return the UTF-8 text of a str: its own memory if it is ASCII, the common case, else the copy
 * that the str caches. */
static const char *text_of(PyObject *object, Py_ssize_t *length) {
  if (!PyUnicode_IS_COMPACT_ASCII(object)) return PyUnicode_AsUTF8AndSize(object, length);
  *length = PyUnicode_GET_LENGTH(object);
  return (const char *)PyUnicode_1BYTE_DATA(object);
}

static int convert_str(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  Py_ssize_t length;
  const char *text = text_of(object, &length);
  if (text == NULL)
    return raise_argument_error(frame, index, PyExc_ValueError,
                                "expected a str that UTF-8 can encode, found %A", object);
  if (strlen(text) != (size_t)length)
    return raise_argument_error(frame, index, PyExc_ValueError,
                                "expected a str without NUL, found %R", object);
  if (callee_fills_bytes(frame->callee, index)) return refuse_constant(frame, index, "a str");
  const struct param *param = callee_param(frame->callee, index);
  if (param != NULL && param->code[0] == '&' && param->kind == CODE_PLAIN) {
    int status = argument_wide_text(frame, index, object);
    if (status != 1) return status;
  }
  return frame_pass(frame, index, DSO_RAW_STR, (void *)(uintptr_t)text);
}

static int convert_bytes(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  if (callee_fills_bytes(frame->callee, index)) return refuse_constant(frame, index, "bytes");
  struct hold *hold = frame_hold(frame, HOLD_MEMORY);
  hold->bytes.data = PyBytes_AS_STRING(object);
  hold->bytes.size = (uint64_t)PyBytes_GET_SIZE(object);
  return frame_pass(frame, index, DSO_BYTE_ARRAY_PTR, &hold->bytes);
}

static int convert_tensor(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  int is_unproved = ((Tensor *)object)->state == STATE_UNPROVED;
  DLTensor *tensor = tensor_use(object);
  if (tensor == NULL && is_unproved) return -1; /* a VerifyError, which is a ValueError */
  if (tensor == NULL && !PyErr_ExceptionMatches(PyExc_ValueError)) return -1;
  if (tensor == NULL)
    return raise_argument_error(frame, index, PyExc_ValueError,
                                "expected a complete tensor, found an incomplete one");
  if (((Tensor *)object)->is_readonly && callee_writes(frame->callee, index))
    return raise_argument_error(frame, index, PyExc_ValueError,
                                "expected a writable tensor, found a read-only one");
  dso_object *made = ((Tensor *)object)->object; /* a library's own object is passed on */
  if (made != NULL) return frame_pass(frame, index, DSO_TENSOR, made);
  frame_pass(frame, index, DSO_DLTENSOR_PTR, tensor);
  return ((Tensor *)object)->is_readonly ? frame_mark_readonly(frame, index) : 0;
}

static int convert_device(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  frame->args[index] = (dso_any){.type_index = DSO_DEVICE, .v_device = ((Device *)object)->device};
  return 0;
}

static int refuse_type(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  return raise_argument_error(frame, index, PyExc_TypeError,
                              "unsupported type, expected int, float, bool, str, bytes, None, an "
                              "array, a Device or a callable, found %s",
                              Py_TYPE(object)->tp_name);
}

/* NumPy's scalars and arrays both have __index__, __float__ and a buffer. Arrays have a length;
 * scalars do not. */
static int is_scalar(PyObject *object) {
  const PyTypeObject *type = Py_TYPE(object);
  const PyNumberMethods *number = type->tp_as_number;
  int has_length = (type->tp_as_sequence != NULL && type->tp_as_sequence->sq_length != NULL) ||
                   (type->tp_as_mapping != NULL && type->tp_as_mapping->mp_length != NULL);
  return number != NULL && (number->nb_index != NULL || number->nb_float != NULL) && !has_length;
}

/* Find the type of a scalar; -1 if it is unsupported. The buffer decides, because NumPy's complex64
 * and bool_ have __float__ too. Without a buffer the methods decide, and there are no bits. */
static int scalar_dtype(PyObject *object, DLDataType *dtype) {
  Py_buffer view;
  if (!PyObject_CheckBuffer(object)) {
    int is_int = Py_TYPE(object)->tp_as_number->nb_index != NULL;
    *dtype = (DLDataType){.code = is_int ? DTYPE_INT : DTYPE_FLOAT};
    return 0;
  }
  if (PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) != 0) {
    PyErr_Clear();
    return -1;
  }
  int known = view.ndim == 0 && /* a datetime64 exports its bytes, with ndim 1 */
              dtype_from_format(view.format, (size_t)view.itemsize, dtype) == 0;
  PyBuffer_Release(&view);
  return known ? 0 : -1;
}

static int convert_index(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  PyObject *integer = PyNumber_Index(object);
  if (integer == NULL) return -1;
  int status = convert_int(frame, index, integer);
  Py_DECREF(integer);
  return status;
}

static int convert_float(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) return -1;
  return set_float(&frame->args[index], value);
}

static int convert_scalar(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  int status;
  DLDataType dtype;
  if (scalar_dtype(object, &dtype) != 0) return refuse_type(frame, index, object);
  switch (dtype.code) {
    case DTYPE_BOOL: return set_bool(&frame->args[index], PyObject_IsTrue(object) == 1);
    case DTYPE_INT:
    case DTYPE_UINT: status = convert_index(frame, index, object); break;
    case DTYPE_FLOAT: status = convert_float(frame, index, object); break;
    default:
      return frame_takes_any(frame, index) ? argument_buffer(frame, index, object)
                                           : refuse_type(frame, index, object);
  }
  if (frame->args[index].small_len == 0) /* no uint64 beyond int64 */
    frame->args[index].small_len = frame_mark_of(frame, index, dtype.code, dtype.bits);
  return status;
}

/* A subclass of float: NumPy's float64, if it has a buffer. */
static int convert_subfloat(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  int status = convert_float(frame, index, object);
  if (PyObject_CheckBuffer(object))
    frame->args[index].small_len = frame_mark_of(frame, index, DTYPE_FLOAT, 64);
  return status;
}

/* An object that a library returned is passed on; other callables get a callback object. */
int argument_callable(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  dso_object *made = function_check(object) ? function_callee(object)->object : NULL;
  if (made != NULL) return frame_pass(frame, index, DSO_FUNCTION, made);
  dso_object *function = callback_new(object, frame->is_result ? NULL : frame->function);
  if (function == NULL) return -1;
  if (frame->callee->facts.num_callbacks > 0 && !frame->is_result)
    callback_set_codes(
        function, facts_callback(&frame->callee->facts, frame->callee->facts.params[index].name));
  frame_hold(frame, HOLD_FUNCTION)->function = function;
  return frame_pass(frame, index, DSO_FUNCTION, function);
}

/* A class is not an array, although it has its instances' `__dlpack__`. */
static int convert_by_method(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  PyObject *method = PyType_Check(object) ? NULL : PyObject_GetAttrString(object, "__dlpack__");
  if (method != NULL) {
    int status = argument_dlpack(frame, index, object, method);
    Py_DECREF(method);
    return status;
  }
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  if (callable_is_module(object)) return argument_module(frame, index, object);
  if (PyCallable_Check(object)) return argument_callable(frame, index, object);
  return refuse_type(frame, index, object);
}

/* The second table at the top of this file, and callables of exact type. */
static int convert_other(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  if (callable_is_plain(Py_TYPE(object))) return argument_callable(frame, index, object);
  int decided = argument_by_code(frame, index, object);
  if (decided != 1) return decided;
  if (tensor_check(object)) return convert_tensor(frame, index, object);
  if (device_check(object)) return convert_device(frame, index, object);
  int status = argument_exchange(frame, index, object);
  if (status != 1) return status;
  if (ndarray_recognise(Py_TYPE(object))) return argument_ndarray(frame, index, object);
  if (PyLong_Check(object)) return convert_int(frame, index, object);
  if (PyFloat_Check(object)) return convert_subfloat(frame, index, object);
  if (PyUnicode_Check(object)) return convert_str(frame, index, object);
  if (PyBytes_Check(object)) return convert_bytes(frame, index, object);
  if (PyTuple_Check(object) || PyList_Check(object))
    return callee_param(frame->callee, index) == NULL ? argument_sequence(frame, index, object)
                                                      : refuse_type(frame, index, object);
  if (is_scalar(object)) return convert_scalar(frame, index, object);
  if (PyObject_CheckBuffer(object)) return argument_buffer(frame, index, object);
  return convert_by_method(frame, index, object);
}

static inline int convert(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  const PyTypeObject *type = Py_TYPE(object);
  if (type == &PyLong_Type) return convert_int(frame, index, object);
  if (type == &PyFloat_Type) return set_float(&frame->args[index], PyFloat_AS_DOUBLE(object));
  if (type == ndarray_type) return argument_ndarray(frame, index, object);
  if (type == &Handle_Type) return argument_handle(frame, index, object);
  if (type == &PyBool_Type) return set_bool(&frame->args[index], object == Py_True);
  if (object == Py_None) return frame_pass(frame, index, DSO_NONE, NULL);
  if (type == &PyUnicode_Type) return convert_str(frame, index, object);
  if (type == &PyBytes_Type) return convert_bytes(frame, index, object);
  return convert_other(frame, index, object);
}

/* Arguments of a function that keeps some of them. */
Py_NO_INLINE static int convert_and_keep(struct call_frame *frame, PyObject *const *objects,
                                         Py_ssize_t count) {
  for (Py_ssize_t index = 0; index < count; index++) {
    int status = argument_kept(frame, index, objects[index]);
    if (status == 1) status = convert(frame, index, objects[index]);
    if (status != 0) return -1;
  }
  return 0;
}

int convert_arguments(struct call_frame *frame, PyObject *const *objects, Py_ssize_t count) {
  if (frame->callee->facts.num_kept > 0) return convert_and_keep(frame, objects, count);
  for (Py_ssize_t index = 0; index < count; index++)
    if (convert(frame, index, objects[index]) != 0) return -1;
  return 0;
}
