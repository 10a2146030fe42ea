/* Callback objects: their safe calls, which any thread may make. */
#include "python/call/callback_object.h"
#include <string.h>

#include "python/call/convert.h"
#include "python/call/handle_members.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "library/in_call.h"
#include "python/interpreter.h"
#include "library/provided.h"
#include "abi/raised.h"
#include "python/tensor/tensor.h"
#include "device/tensor_object.h"

enum { STACK_ARGS = 8 };

/* ---- A Python callable */

/* Return the code of an argument; NULL if it needs none. */
static const char *code_of(const char *codes, int32_t index) {
  for (; index > 0 && codes != NULL; index--) {
    codes = strchr(codes, ' ');
    if (codes != NULL) codes++;
  }
  return codes != NULL && *codes != '-' && *codes != '>' ? codes : NULL;
}

/* Return what C gets for a result of this code; steals it. */
static PyObject *convert_returned(PyObject *function, const char *code, PyObject *value) {
  if (PyTuple_CheckExact(value) && *code != '=') return value;
  PyObject *structs = PyImport_ImportModule("runtime.structs"); /* imported at first use */
  PyObject *made = structs != NULL
                       ? PyObject_CallMethod(structs, "returned", "OsO", function, code, value)
                       : NULL;
  Py_XDECREF(structs);
  Py_DECREF(value);
  return made;
}

/* A handle gets the kind, "@point", or the type, ":*i32", that the library knows. */
static int name_handle(Handle *handle, const char *code) {
  if (handle->kind != NULL || handle->type != NULL) return 0;
  PyObject *text = PyUnicode_FromStringAndSize(code + 1, (Py_ssize_t)strcspn(code + 1, " "));
  if (text == NULL) return -1;
  handle->is_const = *code == '&' || code[1] == '&';
  if (*code == ':') {
    int status = handle_set_type(handle, PyUnicode_AsUTF8(text));
    Py_DECREF(text);
    return status;
  }
  PyUnicode_InternInPlace(&text);
  handle->kind = text;
  return 0;
}

/* Make a complex number of its two parts; steals them. */
static PyObject *complex_of(PyObject *parts) {
  if (!PyTuple_CheckExact(parts) || PyTuple_GET_SIZE(parts) != 2) return parts;
  double real = PyFloat_AsDouble(PyTuple_GET_ITEM(parts, 0));
  PyObject *made = PyComplex_FromDoubles(real, PyFloat_AsDouble(PyTuple_GET_ITEM(parts, 1)));
  Py_DECREF(parts);
  return made;
}

/* Convert an argument by its code; steals it. */
static PyObject *convert_argument(const struct callback *self, PyObject *object, int32_t index) {
  const char *code = object != NULL ? code_of(self->codes, index) : NULL;
  if (code == NULL || self->caller == NULL) return object;
  if (*code == 'c') return complex_of(object);
  if (*code == '=') {
    Py_ssize_t length = (Py_ssize_t)strcspn(code, " ");
    PyObject *made = make_struct(self->caller, code, length, object);
    Py_DECREF(object);
    return made;
  }
  if (!handle_check(object) || name_handle((Handle *)object, code) == 0) return object;
  Py_DECREF(object);
  return NULL;
}

static int make_arguments(const struct callback *self, const dso_any *args, int32_t count,
                          PyObject **objects) {
  struct source source = {.callable = self->callable, .function = self->caller};
  for (; source.argument < count; source.argument++) {
    PyObject *object = convert_value(&source, &args[source.argument]);
    if (self->codes != NULL) object = convert_argument(self, object, source.argument);
    objects[source.argument] = object;
    if (object == NULL) break;
  }
  return source.argument;
}

/* Close a handle of memory that C code lends for the call; not a function, nor a copy. */
static void close_handle(PyObject *object) {
  Handle *handle = (Handle *)object;
  if (handle_check(object) && handle->memory == NULL && !handle_is_function(handle))
    handle->is_closed = 1;
}

/* End the borrow of each tensor that was passed by pointer, and drop the arguments. */
static int end_arguments(PyObject *callable, const dso_any *args, PyObject **objects, int made,
                         const char *codes) {
  int status = 0;
  for (int i = 0; i < made; i++) {
    int is_borrowed = args[i].type_index == DSO_DLTENSOR_PTR && tensor_check(objects[i]);
    if (is_borrowed && tensor_end_borrow(objects[i]) != 0 && !PyErr_Occurred()) {
      status = -1;
      PyErr_Format(PyExc_BufferError,
                   "%R: argument %d: a view of it outlives the call, after which its memory is "
                   "invalid; copy the tensor",
                   callable, i + 1);
    }
    if (code_of(codes, i) != NULL) close_handle(objects[i]);
    Py_DECREF(objects[i]);
  }
  return status;
}

static int call_with(const struct callback *self, const dso_any *args, int32_t count,
                     PyObject **objects, dso_any *result) {
  PyObject *callable = Py_NewRef(self->callable); /* the object may be freed during the call */
  PyObject *value = NULL;
  int made = make_arguments(self, args, count, objects);
  if (made == count)
    value = PyObject_Vectorcall(callable, objects, (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET,
                                NULL);
  const char *result_code = self->codes != NULL ? strchr(self->codes, '>') : NULL;
  if (value != NULL && result_code != NULL && self->caller != NULL)
    value = convert_returned(self->caller, result_code + 1, value);
  int status = end_arguments(callable, args, objects, made, self->codes);
  if (value != NULL && status == 0) status = convert_owned(callable, value, result);
  if (value == NULL) status = -1;
  Py_XDECREF(value);
  Py_DECREF(callable);
  return status;
}

static int call_callable(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct callback *self = handle;
  PyObject *stack[STACK_ARGS + 1]; /* the first element is free for the vectorcall */
  if (count < 0)
    return raise_format(PyExc_TypeError, "%R: number of arguments, expected at least 0, found %d",
                        self->callable, (int)count);
  if (count <= STACK_ARGS) return call_with(self, args, count, stack + 1, result);
  PyObject **heap = PyMem_New(PyObject *, (size_t)count + 1);
  if (heap == NULL) return as_status(raise_no_memory());
  int status = call_with(self, args, count, heap + 1, result);
  PyMem_Free(heap);
  return status;
}

/* ---- The GIL */

static int refuse_call(void) {
  return raised_format("RuntimeError", "the Python interpreter is shutting down");
}

struct gil {
  enum { GIL_HAD, GIL_RESTORED, GIL_ENSURED } how;
  PyGILState_STATE state;
};

static int is_callers_thread(const struct callback *self) {
  return __atomic_load_n(&self->thread, __ATOMIC_RELAXED) == PyThread_get_thread_ident();
}

/* Nearly all callbacks are called in the thread that passed the callable. Its thread state is
 * known, which saves the look-up. */
static int take_gil(const struct callback *self, struct gil *gil) {
  gil->how = is_callers_thread(self) ? GIL_RESTORED : GIL_ENSURED;
  if (gil->how == GIL_RESTORED && interpreter_state() == self->state) {
    gil->how = GIL_HAD;
    return 0;
  }
  if (!interpreter_runs()) return refuse_call();
  if (gil->how == GIL_RESTORED) PyEval_RestoreThread(self->state);
  else gil->state = PyGILState_Ensure();
  return 0;
}

static int is_retired(const struct callback *self) {
  return __atomic_load_n(&self->is_retired, __ATOMIC_ACQUIRE);
}

int callback_look_up_and_call(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct callback *self = handle;
  void *function;
  if (self->name == NULL)
    return raised_format("OutOfMemoryError", "no memory to look a function up");
  if (TVMFFIEnvModLookupFromImports(self->context, self->name, &function) != 0) return -1;
  return TVMFFIFunctionCall(function, args, count, result);
}

static void give_gil_back(const struct gil *gil) {
  if (gil->how == GIL_RESTORED) (void)PyEval_SaveThread();
  if (gil->how == GIL_ENSURED) PyGILState_Release(gil->state);
}

static inline int call_with_gil(dso_safe_call call, void *handle, const dso_any *args,
                                int32_t count, dso_any *result) {
  const struct callback *self = handle;
  struct gil gil = {.how = GIL_HAD};
  if (take_gil(self, &gil) != 0) return -1;
  int was_retired = is_retired(self); /* possibly during the wait for the GIL */
  int is_unreported = result->type_index == DSO_NONE && result->small_len == DSO_UNREPORTED;
  int status = was_retired ? -1 : call(handle, args, count, result);
  if (status != 0 && PyErr_Occurred()) {
    if (is_unreported) PyErr_WriteUnraisable(self->callable);
    else exception_store();
  }
  give_gil_back(&gil);
  return was_retired ? callback_look_up_and_call(handle, args, count, result) : status;
}

static int call_python(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  return call_with_gil(call_callable, handle, args, count, result);
}

/* ---- A Function is called without the GIL, so the object may be retired at any time. The code of
 * the Function's library stays mapped as long as the object may be called. */
int callback_call_symbol(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct callback *self = handle;
  return self->address(self->first, args, count, result);
}

/* Other Functions may reference the caller's library, which they would keep open. Their calls are
 * recorded (library/in_call.h), so that a retired one is dropped when no thread calls it. */
static inline int call_recorded(dso_safe_call call, void *handle, const dso_any *args,
                                int32_t count, dso_any *result) {
  struct callback *self = handle;
  struct in_call *here = in_call_enter(self);
  if (here == NULL) return raised_format("OutOfMemoryError", "no memory for a call");
  int was_retired = is_retired(self);
  int status = was_retired ? -1 : call(handle, args, count, result);
  in_call_leave(here);
  if (is_retired(self)) callback_drop_later(self);
  return was_retired ? callback_look_up_and_call(handle, args, count, result) : status;
}

static int call_function(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  return call_recorded(callback_call_symbol, handle, args, count, result);
}

static int call_function_with_gil(void *handle, const dso_any *args, int32_t count,
                                  dso_any *result) {
  return call_with_gil(call_function, handle, args, count, result);
}

/* ---- A function that is declared to write to an argument: C code that calls it may pass read-only
 * memory. That is an error here, as it is if Python calls the Function. */

static inline int32_t find_readonly(const struct callee *callee, const dso_any *args,
                                    int32_t count) {
  int32_t end = callee->facts.end_written < count ? callee->facts.end_written : count;
  for (int32_t i = callee->facts.first_written; i < end; i++)
    if (callee_writes(callee, i) && tensor_value_is_readonly(&args[i])) return i;
  return -1;
}

static int refuse_argument(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  PyObject *function = ((struct callback *)handle)->callable;
  const struct callee *callee = function_callee(function);
  const struct call_frame frame = {.callee = callee, .function = function};
  (void)result;
  return raise_argument_error(&frame, find_readonly(callee, args, count), PyExc_ValueError,
                              "expected a writable tensor, found a read-only one");
}

static int invoke_writing(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct callee *callee = function_callee(((struct callback *)handle)->callable);
  if (find_readonly(callee, args, count) >= 0)
    return call_with_gil(refuse_argument, handle, args, count, result);
  return callback_call_symbol(handle, args, count, result);
}

static int call_writing_function(void *handle, const dso_any *args, int32_t count,
                                 dso_any *result) {
  return call_recorded(invoke_writing, handle, args, count, result);
}

static int call_writing_function_with_gil(void *handle, const dso_any *args, int32_t count,
                                          dso_any *result) {
  return call_with_gil(call_writing_function, handle, args, count, result);
}

/* ---- Selection */

/* A Function's code is called with or without the GIL. If it writes to an argument, the arguments
 * are checked first. That check needs the Function, so such calls are recorded. */
dso_safe_call callback_call_of(PyObject *callable) {
  if (!function_check(callable)) return call_python;
  const struct callee *callee = function_callee(callable);
  int keeps_gil = callee->facts.gil_keep;
  if (callee->facts.end_written > 0)
    return keeps_gil ? call_writing_function_with_gil : call_writing_function;
  if (keeps_gil) return call_function_with_gil;
  return callee->object == NULL ? callback_call_symbol : call_function;
}
