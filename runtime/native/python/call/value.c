/* Safe-call values as Python objects: results of calls and arguments of callbacks. */
#include "python/call/convert.h"

#include <string.h>

#include "python/call/callback.h"
#include "python/device.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "python/call/handle.h"
#include "abi/object.h"
#include "python/tensor/tensor.h"
#include "vm/object.h"

static PyObject *refuse(const struct source *source, PyObject *class, const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyObject *text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  PyObject *name = text ? callable_name(source->callable) : NULL;
  if (name != NULL && source->is_result) PyErr_Format(class, "%U: result: %U", name, text);
  else if (name != NULL)
    PyErr_Format(class, "%U: argument %d: %U", name, source->argument + 1, text);
  Py_XDECREF(text);
  Py_XDECREF(name);
  return NULL;
}

static PyObject *decode(const struct source *source, const char *text, size_t length) {
  PyObject *string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, NULL);
  if (string != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return string;
  PyErr_Clear();
  return refuse(source, PyExc_ValueError, "a str of %zu bytes, expected UTF-8", length);
}

static PyObject *small_string(const struct source *source, const dso_any *value) {
  if (value->small_len >= sizeof value->v_bytes)
    return refuse(source, PyExc_ValueError, "a small string, expected at most 7 bytes, found %u",
                  (unsigned)value->small_len);
  if (value->type_index == DSO_SMALL_STR) return decode(source, value->v_bytes, value->small_len);
  return PyBytes_FromStringAndSize(value->v_bytes, (Py_ssize_t)value->small_len);
}

static PyObject *byte_array(const struct source *source, const dso_byte_array *array, int is_str) {
  if (array->size > PY_SSIZE_T_MAX)
    return refuse(source, PyExc_ValueError, "a string, expected at most %zd bytes, found %zu",
                  PY_SSIZE_T_MAX, (size_t)array->size);
  if (is_str) return decode(source, array->data, (size_t)array->size);
  return PyBytes_FromStringAndSize(array->data, (Py_ssize_t)array->size);
}

static PyObject *integer(const dso_any *value) {
  if (value->small_len == DSO_UNSIGNED)
    return PyLong_FromUnsignedLongLong((unsigned long long)value->v_int64);
  return PyLong_FromLong(value->v_int64);
}

/* Return the name of a dtype in runtime.dtype, such as "float32". */
static PyObject *dtype_name(DLDataType dtype) {
  PyObject *names = PyImport_ImportModule("runtime.tensors.dtype"); /* imported at first use */
  if (names == NULL) return NULL;
  PyObject *name =
      PyObject_CallMethod(names, "dtype_to_string", "((iii))", dtype.code, dtype.bits, dtype.lanes);
  Py_DECREF(names);
  return name;
}

static PyObject *unsupported(const struct source *source, const dso_any *value) {
  return refuse(source, PyExc_TypeError, "type index %d is not supported", (int)value->type_index);
}

/* A tensor by pointer is borrowed for the duration of a call, so it cannot be a result. */
static PyObject *borrowed_tensor(const struct source *source, const dso_any *value) {
  if (source->is_result) return unsupported(source, value);
  if (value->v_ptr == NULL)
    return refuse(source, PyExc_ValueError, "expected a tensor, found NULL");
  return tensor_borrow(value->v_ptr, value->small_len == DSO_READ_ONLY);
}

/* ---- Arrays become tuples. Arrays may be nested to any depth. An array that is an item of several
 * others becomes one tuple, so the work is linear in the number of arrays. */

struct tuples {
  const struct source *source;
  PyObject *made; /* dict: address of a nested array -> its tuple; NULL before the first */
};

static PyObject *make_tuple(struct tuples *tuples, const dso_array_object *array);

static PyObject *tuple_of(struct tuples *tuples, const dso_array_object *array) {
  PyObject *address = PyLong_FromVoidPtr((void *)(uintptr_t)array);
  if (tuples->made == NULL) tuples->made = PyDict_New();
  if (address == NULL || tuples->made == NULL) return NULL;
  PyObject *tuple = Py_XNewRef(PyDict_GetItemWithError(tuples->made, address));
  if (tuple == NULL && !PyErr_Occurred()) {
    tuple = make_tuple(tuples, array);
    if (tuple != NULL && PyDict_SetItem(tuples->made, address, tuple) != 0) Py_CLEAR(tuple);
  }
  Py_DECREF(address);
  return tuple;
}

static PyObject *item_value(struct tuples *tuples, const dso_any *value) {
  if (value->type_index == DSO_ARRAY && value->v_ptr != NULL) return tuple_of(tuples, value->v_ptr);
  if (value->type_index == DSO_DLTENSOR_PTR) /* an array owns its items, so none is borrowed */
    return unsupported(tuples->source, value);
  return convert_value(tuples->source, value);
}

static PyObject *make_tuple(struct tuples *tuples, const dso_array_object *array) {
  if (Py_EnterRecursiveCall(" while converting a tuple") != 0) return NULL;
  PyObject *tuple = PyTuple_New((Py_ssize_t)array->size);
  for (int64_t i = 0; tuple != NULL && i < array->size; i++) {
    PyObject *item = item_value(tuples, &array->items[i]);
    if (item == NULL) Py_CLEAR(tuple);
    else PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, item);
  }
  Py_LeaveRecursiveCall();
  return tuple;
}

static PyObject *tuple_value(const struct source *source, const dso_array_object *array) {
  struct tuples tuples = {.source = source};
  PyObject *tuple = make_tuple(&tuples, array);
  Py_XDECREF(tuples.made);
  return tuple;
}

static PyObject *shape_value(const dso_shape_object *shape) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)shape->ndim);
  for (size_t i = 0; tuple != NULL && i < shape->ndim; i++) {
    PyObject *extent = PyLong_FromLongLong(shape->dims[i]);
    if (extent == NULL) Py_CLEAR(tuple);
    else PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, extent);
  }
  return tuple;
}

static PyObject *object_value(const struct source *source, const dso_any *value) {
  dso_object *object = value->v_ptr;
  PyObject *library = source->function ? function_library(source->function) : NULL;
  if (object == NULL) return refuse(source, PyExc_ValueError, "expected an object, found NULL");
  switch (value->type_index) {
    case DSO_STR:
    case DSO_BYTES:
      return byte_array(source, (const dso_byte_array *)(object + 1), value->type_index == DSO_STR);
    case DSO_FUNCTION: return function_from_object(source, object);
    case DSO_TENSOR: return tensor_from_object(object, library);
    case DSO_MODULE:
      if (callback_callable(object) == NULL) return unsupported(source, value);
      return Py_NewRef(callback_callable(object));
    case DSO_ARRAY: return tuple_value(source, (const dso_array_object *)object);
    case DSO_SHAPE: return shape_value((const dso_shape_object *)object);
    default: return unsupported(source, value);
  }
}

PyObject *convert_value(const struct source *source, const dso_any *value) {
  switch (value->type_index) {
    case DSO_NONE: Py_RETURN_NONE;
    case DSO_INT: return integer(value);
    case DSO_BOOL: return PyBool_FromLong(value->v_int64 != 0);
    case DSO_FLOAT: return PyFloat_FromDouble(value->v_float64);
    case DSO_OPAQUE_PTR: return handle_borrow(source, value->v_ptr);
    case DSO_DATA_TYPE: return dtype_name(value->v_dtype);
    case DSO_DEVICE: return device_new(value->v_device);
    case DSO_DLTENSOR_PTR: return borrowed_tensor(source, value);
    case DSO_SMALL_STR:
    case DSO_SMALL_BYTES: return small_string(source, value);
    case DSO_RAW_STR:
      if (value->v_c_str == NULL) Py_RETURN_NONE;
      return decode(source, value->v_c_str, strlen(value->v_c_str));
    case DSO_BYTE_ARRAY_PTR:
      if (value->v_ptr == NULL || source->is_result) return unsupported(source, value);
      return byte_array(source, value->v_ptr, 0);
    default: break;
  }
  return value->type_index >= DSO_OBJECT ? object_value(source, value) : unsupported(source, value);
}

PyObject *convert_result(const struct call_frame *frame, const dso_any *result) {
  PyObject *function = frame->function;
  struct source source = {.callable = function, .function = function, .is_result = 1};
  int has_code = result->type_index == DSO_OPAQUE_PTR || result->type_index == DSO_ARRAY ||
                 result->type_index == DSO_BYTES;
  PyObject *value = has_code ? convert_by_code(frame, result) : convert_value(&source, result);
  if (result->type_index < DSO_OBJECT || result->v_ptr == NULL) return value;
  PyObject *pending = value == NULL ? exception_take() : NULL;
  object_release(result->v_ptr);
  if (pending != NULL) exception_set(pending);
  return value;
}
