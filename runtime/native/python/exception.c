/* Exceptions of the core: raising them, and carrying them through C code.
 *
 * Lifetime and ownership. The exception that is set belongs to Python's thread state.
 * exception_take moves that reference to the caller; exception_set takes it back. Code that may run
 * Python while an exception is set takes it first and sets it again afterwards.
 *
 * C code between two Python calls cannot carry an exception. If a callback fails, exception_store
 * stores the exception in the dict of Python's thread state, which then owns it. It also copies the
 * kind and message to the error slot (abi/raised.h), where C code can read or replace them. The
 * Function call that ends with -1 takes both in raise_call_error. It raises the stored exception
 * itself if no error was raised after it; otherwise the stored one becomes the context of the newer
 * error. Errors raised before the call are ignored: `count` tells them apart. If the call succeeds
 * although a callback failed, exception_discard drops the exception. The strings of raised_take and
 * the error object of tvm_ffi_take_error are freed here. One file: both parts use raise_kind. */
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

PyObject *error_new(const char *class_name, PyObject *text, PyObject *facts) {
  PyObject *module = PyImport_ImportModule("runtime.error"); /* imported at the first error */
  PyObject *class = module ? PyObject_GetAttrString(module, class_name) : NULL;
  PyObject *args = text ? PyTuple_Pack(1, text) : NULL;
  PyObject *error = class && args && facts ? PyObject_Call(class, args, facts) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(class);
  Py_XDECREF(text);
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
  Py_XDECREF(text);
  Py_XDECREF(shown);
  PyObject *facts = message ? Py_BuildValue("{sOss}", "path", path, "reason", reason) : NULL;
  PyObject *error = error_new("LibraryLoadError", message, facts);
  if (error != NULL) exception_set(error);
  return NULL;
}

PyObject *raise_symbol_error(PyObject *path, const char *reason, const char *prefix, PyObject *name,
                             uint64_t address, const char *wrong) {
  char hex[24]; /* PyUnicode_FromFormat supports %llx only from 3.12 on */
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
  int is_declared = frame->callee->signature != NULL || frame->callee->names != NULL;
  if (message == NULL || !is_declared) return message;
  PyObject *signature = PyObject_GetAttrString(frame->function, "signature");
  PyObject *whole =
      signature ? PyUnicode_FromFormat("%U; declared as %S", message, signature) : NULL;
  Py_XDECREF(signature);
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

/* Make an exception of the class `kind` in runtime.error, with the attributes parsed from the text.
 * NULL, with or without an exception set, if there is no such class. */
static PyObject *make_own_exception(const char *kind, PyObject *text) {
  PyObject *module = PyImport_ImportModule("runtime.error"); /* imported at the first error */
  PyObject *error = module ? PyObject_CallMethod(module, "from_text", "sO", kind, text) : NULL;
  Py_XDECREF(module);
  if (error != Py_None) return error;
  Py_DECREF(error);
  return NULL;
}

/* Make OSError(2, text) of "[Errno 2] text", which is then a FileNotFoundError; NULL, with or without
 * an exception set, for another text. */
static PyObject *make_os_error(const char *message) {
  static const char start[] = "[Errno ";
  char *end;
  if (message == NULL || strncmp(message, start, sizeof start - 1) != 0) return NULL;
  long number = strtol(message + sizeof start - 1, &end, 10);
  if (strncmp(end, "] ", 2) != 0) return NULL;
  return PyObject_CallFunction(PyExc_OSError, "ls", number, end + 2);
}

/* Raise `kind` with `message`. The exception is RuntimeError "<kind>: <message>" if `kind` is
 * neither a builtin exception nor one of runtime.error, or if the class needs more than a message
 * (UnicodeDecodeError). */
static PyObject *raise_kind(const char *kind, const char *message, Py_ssize_t length) {
  PyObject *text = PyUnicode_DecodeUTF8(message, length, "replace");
  if (text == NULL) return NULL;
  PyObject *class = builtin_exception(kind);
  PyObject *error = class == PyExc_OSError ? make_os_error(PyUnicode_AsUTF8(text)) : NULL;
  if (error == NULL && !PyErr_Occurred())
    error = class ? PyObject_CallOneArg(class, text) : make_own_exception(kind, text);
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

int raise_format(PyObject *class, const char *format, ...) {
  va_list values;
  va_start(values, format);
  PyErr_FormatV(class, format, values);
  va_end(values);
  return -1;
}

void *raise_no_memory(void) {
  static const char message[] = "not enough memory for an operation of the native core";
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

/* ---- Exceptions that pass through C code. The dict of Python's thread state owns them. If C code
 * started the thread, the dict is freed when the thread ends. */

static const char STORED[] = "runtime._core.stored_exception";

/* raised_at() right after the exception was stored, to recognise a later error; 0 if none is
 * stored. */
static _Thread_local uint64_t stored_at;

/* The number of threads with a stored exception. If it is 0, exception_discard returns at once.
 * Protected by the GIL. */
static Py_ssize_t num_stored;

static void raise_in_slot(PyObject *exception) {
  PyObject *text = PyObject_Str(exception);
  const char *message = text ? PyUnicode_AsUTF8(text) : NULL;
  const char *dot = strrchr(Py_TYPE(exception)->tp_name, '.');
  raised_set(dot ? dot + 1 : Py_TYPE(exception)->tp_name, message);
  PyErr_Clear();
  Py_XDECREF(text);
}

void exception_store(void) {
  PyObject *exception = exception_take();
  PyObject *dict = PyThreadState_GetDict();
  raise_in_slot(exception);
  num_stored -= stored_at != 0;
  stored_at = 0;
  if (dict != NULL && PyDict_SetItemString(dict, STORED, exception) == 0) stored_at = raised_at();
  num_stored += stored_at != 0;
  PyErr_Clear();
  Py_DECREF(exception);
}

/* Take the exception that was stored in this thread since `count`, or NULL. Sets *is_newest to true
 * if no other error was raised after it. */
static PyObject *take_stored(uint64_t count, int *is_newest) {
  PyObject *dict = stored_at > count ? PyThreadState_GetDict() : NULL;
  PyObject *exception = dict ? Py_XNewRef(PyDict_GetItemString(dict, STORED)) : NULL;
  *is_newest = stored_at == raised_at();
  exception_discard();
  return exception;
}

void exception_discard(void) {
  if (num_stored == 0 || stored_at == 0) return;
  PyObject *dict = PyThreadState_GetDict();
  stored_at = 0;
  num_stored--;
  if (dict == NULL || PyDict_GetItemString(dict, STORED) == NULL) return;
  PyObject *pending = exception_take();
  if (PyDict_DelItemString(dict, STORED) != 0) PyErr_Clear();
  if (pending != NULL) exception_set(pending);
}

/* Return true if the error object has this kind and message. raised_set forwards each error to a
 * real libtvm_ffi, so both slots may describe the same error. */
static int error_matches(const dso_object *error, const char *kind, const char *message) {
  const tvm_ffi_error_cell *cell = tvm_ffi_error(error);
  return cell->kind.size == strlen(kind) && cell->message.size == strlen(message) &&
         memcmp(cell->kind.data, kind, strlen(kind)) == 0 &&
         memcmp(cell->message.data, message, strlen(message)) == 0;
}

/* Raise the error of the slot; if the slot was filled from an exception, raise that. */
static void raise_slot(const char *kind, const char *message, PyObject *original) {
  if (original == NULL) raise_kind(kind, message, (Py_ssize_t)strlen(message));
  else exception_set(Py_NewRef(original));
}

/* Set `context` as the __context__ of the exception that is set: C code replaced it. */
static void add_context(PyObject *context) {
  PyObject *exception = exception_take();
  if (exception != context) PyException_SetContext(exception, Py_NewRef(context));
  exception_set(exception);
}

PyObject *raise_call_error(const struct callee *callee, int status, uint64_t count) {
  char *kind;
  const char *message;
  int is_newest;
  if (PyErr_Occurred()) return NULL; /* a function that keeps the GIL may set an exception */
  PyObject *original = take_stored(count, &is_newest);
  dso_object *error = tvm_ffi_take_error(); /* always: our errors are stored in both slots */
  int taken = raised_take(count, &kind, &message);
  int is_ours = error == NULL || (taken != 0 && error_matches(error, kind, message));
  if (!is_ours) raise_tvm_error(error);
  else if (taken > 0) raise_slot(kind, message, is_newest ? original : NULL);
  else /* nothing was raised since `count`; an error of tvm_ffi is the copy of an older one */
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
