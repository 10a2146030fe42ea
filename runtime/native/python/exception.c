#include "python/exception.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "python/call/convert.h"
#include "abi/object.h"
#include "abi/raised.h"
#include "abi/tvm_ffi.h"

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

PyObject *raise_symbol_error(PyObject *path, const char *reason, const char *prefix, PyObject *name,
                             uint64_t address, const char *wrong) {
  char hex[24]; /* PyUnicode_FromFormat has %llx from 3.12 only */
  snprintf(hex, sizeof hex, "0x%" PRIx64, address);
  return raise_load_error(path, reason, "%s%U at %s: %s", prefix, name, hex, wrong);
}

PyObject *callable_name(PyObject *callable) {
  PyObject *name = PyObject_GetAttrString(callable, "__name__");
  if (name != NULL && PyUnicode_Check(name)) return name;
  Py_XDECREF(name);
  PyErr_Clear();
  return PyUnicode_FromString(Py_TYPE(callable)->tp_name);
}

static PyObject *argument_text(const struct call_frame *frame, PyObject *name, Py_ssize_t index,
                               PyObject *text) {
  const struct param *param = callee_param(frame->callee, index);
  if (frame->is_result) return PyUnicode_FromFormat("%U: result: %U", name, text);
  if (param == NULL) return PyUnicode_FromFormat("%U: argument %zd: %U", name, index + 1, text);
  return PyUnicode_FromFormat("%U: argument %zd '%s': %U", name, index + 1, param->name, text);
}

static PyObject *argument_message(const struct call_frame *frame, Py_ssize_t index,
                                  PyObject *text) {
  PyObject *name = callable_name(frame->function);
  PyObject *message = name ? argument_text(frame, name, index, text) : NULL;
  Py_XDECREF(name);
  if (message == NULL || frame->callee->signature == NULL) return message;
  PyObject *whole = PyUnicode_FromFormat("%U; declared as %U", message, frame->callee->signature);
  Py_DECREF(message);
  return whole;
}

int raise_argument_error(const struct call_frame *frame, Py_ssize_t index, PyObject *exception,
                         const char *format, ...) {
  PyObject *cause = exception_take();
  va_list values;
  va_start(values, format);
  PyObject *text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  PyObject *message = text ? argument_message(frame, index, text) : NULL;
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

/* An exception of runtime.error's class `kind`, with the attributes that the text tells; NULL with
 * or without an exception set where there is none. */
static PyObject *make_own_exception(const char *kind, PyObject *text) {
  PyObject *module = PyImport_ImportModule("runtime.error"); /* the cold path: not at start */
  PyObject *error = module ? PyObject_CallMethod(module, "from_text", "sO", kind, text) : NULL;
  Py_XDECREF(module);
  if (error != Py_None) return error;
  Py_DECREF(error);
  return NULL;
}

/* Raise `kind` with `message`. Kinds that are neither a builtin exception nor ours, or one that a
 * message alone cannot make (UnicodeDecodeError), become RuntimeError "<kind>: <message>". */
static PyObject *raise_kind(const char *kind, const char *message, Py_ssize_t length) {
  PyObject *text = PyUnicode_DecodeUTF8(message, length, "replace");
  if (text == NULL) return NULL;
  PyObject *class = builtin_exception(kind);
  PyObject *error = class ? PyObject_CallOneArg(class, text) : make_own_exception(kind, text);
  if (error == NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) {
    Py_DECREF(text);
    return NULL;
  }
  if (error == NULL) {
    PyErr_Clear();
    PyErr_Format(PyExc_RuntimeError, "%s: %U", kind, text);
  } else {
    exception_set(error);
  }
  Py_DECREF(text);
  return NULL;
}

void *raise_no_memory(void) {
  static const char message[] = "no memory for what the native core was asked to do";
  return raise_kind("OutOfMemoryError", message, sizeof message - 1);
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

/* ---- Exceptions on their way through C code. They are kept in the dict of Python's thread state,
 * which drops them when a thread that C code made ends. */

static const char LEFT[] = "runtime._core.left";

/* raised_at() right after the exception was left, so that a later error is told apart; 0 when
 * there is none. */
static _Thread_local uint64_t left_at;

/* How many threads have one, so that the calls of others need not ask; of the GIL. */
static Py_ssize_t num_left;

static void raise_in_slot(PyObject *exception) {
  PyObject *text = PyObject_Str(exception);
  const char *message = text ? PyUnicode_AsUTF8(text) : NULL;
  const char *dot = strrchr(Py_TYPE(exception)->tp_name, '.');
  raised_set(dot ? dot + 1 : Py_TYPE(exception)->tp_name, message);
  PyErr_Clear();
  Py_XDECREF(text);
}

void exception_leave(void) {
  PyObject *exception = exception_take();
  PyObject *dict = PyThreadState_GetDict();
  raise_in_slot(exception);
  num_left -= left_at != 0;
  left_at = 0;
  if (dict != NULL && PyDict_SetItemString(dict, LEFT, exception) == 0) left_at = raised_at();
  num_left += left_at != 0;
  PyErr_Clear();
  Py_DECREF(exception);
}

/* The exception that was left in this thread since `count`, or NULL; *is_newest says whether no
 * other error was raised after it. */
static PyObject *take_left(uint64_t count, int *is_newest) {
  PyObject *dict = left_at > count ? PyThreadState_GetDict() : NULL;
  PyObject *exception = dict ? Py_XNewRef(PyDict_GetItemString(dict, LEFT)) : NULL;
  *is_newest = left_at == raised_at();
  exception_forget();
  return exception;
}

void exception_forget(void) {
  if (num_left == 0 || left_at == 0) return;
  PyObject *dict = PyThreadState_GetDict();
  left_at = 0;
  num_left--;
  if (dict == NULL || PyDict_GetItemString(dict, LEFT) == NULL) return;
  PyObject *pending = exception_take();
  if (PyDict_DelItemString(dict, LEFT) != 0) PyErr_Clear();
  if (pending != NULL) exception_set(pending);
}

/* Whether two accounts are of one error: ours is forwarded to a real tvm_ffi as it is raised. */
static int says(const dso_object *error, const char *kind, const char *message) {
  const tvm_ffi_error_cell *cell = tvm_ffi_error(error);
  return cell->kind.size == strlen(kind) && cell->message.size == strlen(message) &&
         memcmp(cell->kind.data, kind, strlen(kind)) == 0 &&
         memcmp(cell->message.data, message, strlen(message)) == 0;
}

/* Raise the error of the slot, as the exception that it was made of if there is one. */
static void raise_slot(const char *kind, const char *message, PyObject *original) {
  if (original == NULL) raise_kind(kind, message, (Py_ssize_t)strlen(message));
  else exception_set(Py_NewRef(original));
}

/* The exception that is set came of another one, which C code turned into it. */
static void add_context(PyObject *context) {
  PyObject *exception = exception_take();
  if (exception != context) PyException_SetContext(exception, Py_NewRef(context));
  exception_set(exception);
}

PyObject *raise_call_error(const struct callee *callee, int status, uint64_t count) {
  char *kind;
  const char *message;
  int is_newest;
  if (PyErr_Occurred()) return NULL; /* a function that keeps the GIL may set it itself */
  PyObject *original = take_left(count, &is_newest);
  dso_object *error = tvm_ffi_take_error(); /* also when the error is ours: it went to both */
  int taken = raised_take(count, &kind, &message);
  int is_ours = error == NULL || (taken != 0 && says(error, kind, message));
  if (!is_ours) raise_tvm_error(error);
  else if (taken > 0) raise_slot(kind, message, is_newest ? original : NULL);
  else /* nothing was raised, or only before this call: then tvm_ffi's is the copy of that */
    PyErr_Format(PyExc_RuntimeError, "%U: returned %d without raising", callee->name, status);
  if (taken != 0) raised_free(kind);
  if (original != NULL) add_context(original);
  Py_XDECREF(original);
  if (error != NULL) object_release(error);
  return NULL;
}

PyObject *raise_native_error(const char *where, uint64_t count) {
  struct callee callee = {.name = PyUnicode_FromString(where)};
  if (callee.name == NULL) return NULL;
  (void)raise_call_error(&callee, -1, count);
  Py_DECREF(callee.name);
  return NULL;
}
