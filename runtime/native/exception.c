#include "exception.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "object.h"
#include "raised.h"
#include "tvm_ffi.h"

PyObject *exception_take(void) {
#if PY_VERSION_HEX >= 0x030C0000
  return PyErr_GetRaisedException();
#else
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (type == NULL) return NULL;
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback != NULL) PyException_SetTraceback(value, traceback);
  Py_DECREF(type);
  Py_XDECREF(traceback);
  return value;
#endif
}

void exception_set(PyObject *value) {
#if PY_VERSION_HEX >= 0x030C0000
  PyErr_SetRaisedException(value);
#else
  PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(value)), value, PyException_GetTraceback(value));
#endif
}

PyObject *shown_path(PyObject *path) {
  PyObject *printable = PyObject_CallMethod(path, "isprintable", NULL);
  if (printable == NULL) return NULL;
  int plain = printable == Py_True && PyUnicode_GET_LENGTH(path) > 0;
  Py_DECREF(printable);
  return plain ? Py_NewRef(path) : PyObject_Repr(path);
}

static PyObject *make_load_error(PyObject *message, PyObject *path, const char *reason) {
  PyObject *module = PyImport_ImportModule("runtime.error"); /* the cold path: not at start */
  PyObject *class = module ? PyObject_GetAttrString(module, "LibraryLoadError") : NULL;
  PyObject *args = class ? Py_BuildValue("(O)", message) : NULL;
  PyObject *facts = args ? Py_BuildValue("{sOss}", "path", path, "reason", reason) : NULL;
  PyObject *error = facts ? PyObject_Call(class, args, facts) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(class);
  Py_XDECREF(args);
  Py_XDECREF(facts);
  return error;
}

PyObject *raise_load_error(PyObject *path, const char *reason, const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyObject *text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  PyObject *shown = text ? shown_path(path) : NULL;
  PyObject *message = shown ? PyUnicode_FromFormat("%U: %U", shown, text) : NULL;
  PyObject *error = message ? make_load_error(message, path, reason) : NULL;
  Py_XDECREF(text);
  Py_XDECREF(shown);
  Py_XDECREF(message);
  if (error != NULL) exception_set(error);
  return NULL;
}

PyObject *raise_symbol_error(PyObject *path, const char *reason, const char *prefix,
                             PyObject *name, uint64_t address, const char *wrong) {
  char hex[24]; /* PyUnicode_FromFormat has %llx from 3.12 only */
  snprintf(hex, sizeof hex, "0x%" PRIx64, address);
  return raise_load_error(path, reason, "%s%U at %s: %s", prefix, name, hex, wrong);
}

static PyObject *argument_message(const struct target *target, Py_ssize_t index, PyObject *text) {
  const struct param *param = target_param(target, index);
  const char *open = param ? " (" : "", *name = param ? param->name : "", *shut = param ? ")" : "";
  if (target->signature == NULL)
    return PyUnicode_FromFormat("%U: argument %zd%s%s%s: %U", target->name, index, open, name, shut,
                                text);
  return PyUnicode_FromFormat("%U: argument %zd%s%s%s: %U; declared %U", target->name, index, open,
                              name, shut, text, target->signature);
}

int raise_argument_error(const struct target *target, Py_ssize_t index, PyObject *exception,
                         const char *format, ...) {
  PyObject *cause = exception_take();
  va_list values;
  va_start(values, format);
  PyObject *text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  PyObject *message = text ? argument_message(target, index, text) : NULL;
  if (message != NULL) PyErr_SetObject(exception, message);
  Py_XDECREF(text);
  Py_XDECREF(message);
  if (cause == NULL) return -1;
  PyObject *raised = exception_take();
  PyException_SetContext(raised, Py_NewRef(cause));
  PyException_SetCause(raised, cause);
  exception_set(raised);
  return -1;
}

/* The builtin exception class called `kind`, borrowed, or NULL. */
static PyObject *builtin_exception(const char *kind) {
  PyObject *class = PyDict_GetItemString(PyEval_GetBuiltins(), kind);
  if (class == NULL || !PyExceptionClass_Check(class)) return NULL;
  return PyObject_IsSubclass(class, PyExc_Exception) == 1 ? class : NULL;
}

/* Raise `kind` with `message`. Kinds that are no builtin exception, or one that a message alone
 * cannot make (UnicodeDecodeError), become RuntimeError "<kind>: <message>". */
static PyObject *raise_kind(const char *kind, const char *message, Py_ssize_t length) {
  PyObject *text = PyUnicode_DecodeUTF8(message, length, "replace");
  if (text == NULL) return NULL;
  PyObject *class = builtin_exception(kind);
  PyObject *error = class ? PyObject_CallOneArg(class, text) : NULL;
  if (error == NULL) {
    PyErr_Clear();
    PyErr_Format(PyExc_RuntimeError, "%s: %U", kind, text);
  } else {
    exception_set(error);
  }
  Py_DECREF(text);
  return NULL;
}

static PyObject *raise_tvm_error(const dso_object *error) {
  const dso_byte_array *kind = &tvm_ffi_error(error)->kind;
  const dso_byte_array *message = &tvm_ffi_error(error)->message;
  char name[64];
  size_t length = kind->size < sizeof name ? (size_t)kind->size : sizeof name - 1;
  memcpy(name, kind->data, length);
  name[length] = '\0';
  return raise_kind(name, message->data, (Py_ssize_t)message->size);
}

PyObject *raise_call_error(const struct target *target, int status, uint64_t count) {
  char *kind;
  const char *message;
  if (PyErr_Occurred()) return NULL; /* a function that keeps the GIL may set it itself */
  dso_object *error = tvm_ffi_take_error(); /* also when the error is ours: it went to both */
  if (raised_take(count, &kind, &message)) {
    raise_kind(kind, message, (Py_ssize_t)strlen(message));
    free(kind);
  } else if (error != NULL) {
    raise_tvm_error(error);
  } else {
    PyErr_Format(PyExc_RuntimeError, "%U: returned %d without raising", target->name, status);
  }
  if (error != NULL) object_release(error);
  return NULL;
}
