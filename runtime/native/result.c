#include "convert.h"

#include <string.h>

#include "exception.h"
#include "object.h"

static PyObject *decode(const struct target *target, const char *text, size_t length) {
  PyObject *string = PyUnicode_DecodeUTF8(text, (Py_ssize_t)length, NULL);
  if (string != NULL || !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return string;
  PyErr_Clear();
  return PyErr_Format(PyExc_ValueError, "%U: result is a str of %zu bytes that is not UTF-8",
                      target->name, length);
}

static PyObject *refuse(const struct target *target, const char *what) {
  return PyErr_Format(PyExc_ValueError, "%U: result is %s", target->name, what);
}

static PyObject *small_result(const struct target *target, const dso_any *result) {
  if (result->small_len >= sizeof result->v_bytes)
    return refuse(target, "a small string of more than 7 bytes");
  if (result->type_index == DSO_SMALL_STR)
    return decode(target, result->v_bytes, result->small_len);
  return PyBytes_FromStringAndSize(result->v_bytes, (Py_ssize_t)result->small_len);
}

static PyObject *heap_string(const struct target *target, const dso_object *object, int is_str) {
  const dso_byte_array *array = (const dso_byte_array *)(object + 1);
  if (array->size > PY_SSIZE_T_MAX) return refuse(target, "a string of impossible size");
  if (is_str) return decode(target, array->data, (size_t)array->size);
  return PyBytes_FromStringAndSize(array->data, (Py_ssize_t)array->size);
}

static PyObject *object_result(const struct target *target, const dso_any *result) {
  dso_object *object = result->v_ptr;
  PyObject *value = NULL;
  if (object == NULL) return refuse(target, "an object that is NULL");
  if (result->type_index == DSO_STR || result->type_index == DSO_BYTES)
    value = heap_string(target, object, result->type_index == DSO_STR);
  else
    PyErr_Format(PyExc_TypeError, "%U: result of type index %d is not supported", target->name,
                 (int)result->type_index);
  object_release(object);
  return value;
}

PyObject *convert_result(const struct target *target, const dso_any *result) {
  switch (result->type_index) {
    case DSO_NONE: Py_RETURN_NONE;
    case DSO_INT:
      if (result->small_len == DSO_UNSIGNED)
        return PyLong_FromUnsignedLongLong((unsigned long long)result->v_int64);
      return PyLong_FromLongLong(result->v_int64);
    case DSO_BOOL: return PyBool_FromLong(result->v_int64 != 0);
    case DSO_FLOAT: return PyFloat_FromDouble(result->v_float64);
    case DSO_SMALL_STR:
    case DSO_SMALL_BYTES: return small_result(target, result);
    case DSO_RAW_STR:
      if (result->v_c_str == NULL) Py_RETURN_NONE;
      return decode(target, result->v_c_str, strlen(result->v_c_str));
    default: break;
  }
  if (result->type_index >= DSO_OBJECT) return object_result(target, result);
  return PyErr_Format(PyExc_TypeError, "%U: result of type index %d is not supported",
                      target->name, (int)result->type_index);
}
