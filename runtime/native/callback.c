#define _POSIX_C_SOURCE 200809L /* strdup */
#include "callback.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "exception.h"
#include "function.h"
#include "heap.h"
#include "in_call.h"
#include "interpreter.h"
#include "library.h"
#include "owned_tensor.h"
#include "provided.h"
#include "raised.h"
#include "tensor.h"
#include "tensor_object.h"

enum { STACK_ARGS = 8 };

struct callback {
  dso_function_object function;
  PyObject *callable; /* NULL after it was retired and no thread calls it any more */
  PyObject *owner;    /* or NULL */
  PyObject *library;  /* of a retired function of a library: has its code; or NULL */
  dso_safe_call address; /* of a Function: its code, and the code's first argument */
  void *first;
  int is_retired;
  void *context; /* that a retired object asks for `name` */
  char *name;
  /* While the call lasts whose argument it is: */
  PyObject *caller;     /* keeps the code behind what it is given */
  unsigned long thread; /* that calls, else 0 */
  PyThreadState *state; /* of that thread */
};

/* ---- Converting: the arguments there, the result back */

static int own_string(dso_any *result, int is_str, const char *data, size_t nbytes) {
  if (object_make_string(result, is_str, data, nbytes) == 0) return 0;
  raise_no_memory();
  return -1;
}

/* An argument is borrowed, a result is owned. */
static int own_value(struct frame *frame, PyObject *value, dso_any *result) {
  const dso_byte_array *bytes = result->v_ptr;
  switch (result->type_index) {
    case DSO_RAW_STR: return own_string(result, 1, result->v_c_str, strlen(result->v_c_str));
    case DSO_BYTE_ARRAY_PTR: return own_string(result, 0, bytes->data, (size_t)bytes->size);
    case DSO_ARRAY:
    case DSO_FUNCTION:
    case DSO_MODULE: object_retain(result->v_ptr); return 0;
    case DSO_DLTENSOR_PTR:
    case DSO_TENSOR: return own_tensor(frame, value, result);
    default: return 0;
  }
}

int owned_value(PyObject *callable, PyObject *value, dso_any *result) {
  return owned_item(callable, value, NULL, result);
}

int owned_item(PyObject *callable, PyObject *value, PyObject **arrays, dso_any *result) {
  static const struct target no_target;
  struct hold hold;
  struct frame frame = {.target = &no_target, .function = callable, .args = result,
                        .holds = &hold, .is_result = 1, .arrays = arrays};
  int status = convert_arguments(&frame, &value, 1);
  if (status == 0) status = own_value(&frame, value, result);
  if (status != 0) *result = (dso_any){.type_index = DSO_NONE};
  if (frame.is_owing) frame_release(&frame);
  return status;
}

static int make_arguments(const struct callback *self, const dso_any *args, int32_t count,
                          PyObject **objects) {
  struct source source = {.callable = self->callable, .function = self->caller};
  for (; source.argument < count; source.argument++) {
    objects[source.argument] = convert_value(&source, &args[source.argument]);
    if (objects[source.argument] == NULL) break;
  }
  return source.argument;
}

/* A tensor that was passed by pointer is the callable's for the call only. */
static int end_arguments(PyObject *callable, const dso_any *args, PyObject **objects, int made) {
  int status = 0;
  for (int i = 0; i < made; i++) {
    int is_loan = args[i].type_index == DSO_DLTENSOR_PTR && tensor_check(objects[i]);
    if (is_loan && tensor_end_loan(objects[i]) != 0 && !PyErr_Occurred()) {
      status = -1;
      PyErr_Format(PyExc_BufferError,
                   "%R: argument %d: a view of it outlives the call, and would show memory that "
                   "is gone; copy it",
                   callable, i + 1);
    }
    Py_DECREF(objects[i]);
  }
  return status;
}

static int call_with(const struct callback *self, const dso_any *args, int32_t count,
                     PyObject **objects, dso_any *result) {
  PyObject *callable = Py_NewRef(self->callable); /* the object may go while it is called */
  PyObject *value = NULL;
  int made = make_arguments(self, args, count, objects);
  if (made == count)
    value = PyObject_Vectorcall(callable, objects,
                                (size_t)count | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
  int status = end_arguments(callable, args, objects, made);
  if (value != NULL && status == 0) status = owned_value(callable, value, result);
  if (value == NULL) status = -1;
  Py_XDECREF(value);
  Py_DECREF(callable);
  return status;
}

static int call_callable(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct callback *self = handle;
  PyObject *stack[STACK_ARGS + 1]; /* one ahead, which a vectorcall may use */
  if (count < 0) {
    PyErr_Format(PyExc_TypeError, "%R: expected arguments, found %d", self->callable, (int)count);
    return -1;
  }
  if (count <= STACK_ARGS) return call_with(self, args, count, stack + 1, result);
  PyObject **heap = PyMem_New(PyObject *, (size_t)count + 1);
  if (heap == NULL) {
    raise_no_memory();
    return -1;
  }
  int status = call_with(self, args, count, heap + 1, result);
  PyMem_Free(heap);
  return status;
}

/* ---- Being called: safe calls, from any thread */

static int refuse_call(void) {
  raised_set("RuntimeError", "the Python interpreter is shutting down");
  return -1;
}

struct gil {
  enum { GIL_HAD, GIL_RESTORED, GIL_ENSURED } how;
  PyGILState_STATE state;
};

static int is_callers_thread(const struct callback *self) {
  return __atomic_load_n(&self->thread, __ATOMIC_RELAXED) == PyThread_get_thread_ident();
}

/* In the thread that passed the callable, which nearly all are called in, the thread state is known
 * and need not be looked for. */
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

/* A retired one. */
static int look_up_and_call(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct callback *self = handle;
  void *function;
  if (self->name == NULL) return raised_format("OutOfMemoryError", "no memory to look a function up");
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
  int was_retired = is_retired(self); /* while we waited for the GIL */
  int status = was_retired ? -1 : call(handle, args, count, result);
  if (status != 0 && PyErr_Occurred()) exception_leave();
  give_gil_back(&gil);
  return was_retired ? look_up_and_call(handle, args, count, result) : status;
}

static int call_python(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  return call_with_gil(call_callable, handle, args, count, result);
}

/* Its references may run any code when they go. */
static void drop_callable(struct callback *self) {
  PyObject *pending = exception_take();
  Py_CLEAR(self->callable);
  Py_CLEAR(self->owner);
  if (pending != NULL) exception_set(pending);
}

void callback_drop(dso_object *object) {
  struct callback *self = (struct callback *)object;
  if (!in_call_any(self)) drop_callable(self);
}

static int drop_now(void *object) {
  callback_drop(object);
  object_release(object);
  return 0;
}

/* Called by a thread that was calling the object as it was retired. The main thread drops it: here,
 * the last reference to the library would unmap the code that this thread returns to. */
static void drop_later(struct callback *self) {
  object_retain(&self->function.object);
  if (interpreter_runs() && Py_AddPendingCall(drop_now, self) == 0) return;
  object_release(&self->function.object); /* the queue is full: the context drops it later */
}

/* A Function is called without Python in between, and so without the GIL: then the object may be
 * retired at any time. The code of a library stays mapped for as long as the object may be called. */
static int call_symbol(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct callback *self = handle;
  return self->address(self->first, args, count, result);
}

/* Other Functions may lead to the caller's library, which would keep itself open. So they are dropped
 * once no thread calls them. */
static inline int call_noted(dso_safe_call call, void *handle, const dso_any *args, int32_t count,
                             dso_any *result) {
  struct callback *self = handle;
  struct in_call *here = in_call_enter(self);
  if (here == NULL) return raised_format("OutOfMemoryError", "no memory for a call");
  int was_retired = is_retired(self);
  int status = was_retired ? -1 : call(handle, args, count, result);
  in_call_leave(here);
  if (is_retired(self)) drop_later(self);
  return was_retired ? look_up_and_call(handle, args, count, result) : status;
}

static int call_function(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  return call_noted(call_symbol, handle, args, count, result);
}

static int call_function_with_gil(void *handle, const dso_any *args, int32_t count,
                                  dso_any *result) {
  return call_with_gil(call_function, handle, args, count, result);
}

/* ---- A declared function that writes to an argument: code that calls it passes what it has, so
 * memory that may only be read is refused here, as it is when Python calls the Function. */

static inline int32_t find_readonly(const struct target *target, const dso_any *args,
                                    int32_t count) {
  int32_t end = target->facts.end_written < count ? target->facts.end_written : count;
  for (int32_t i = target->facts.first_written; i < end; i++)
    if (target_writes(target, i) && tensor_value_is_readonly(&args[i])) return i;
  return -1;
}

static int refuse_argument(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  PyObject *function = ((struct callback *)handle)->callable;
  const struct target *target = function_target(function);
  const struct frame frame = {.target = target, .function = function};
  (void)result;
  return raise_argument_error(&frame, find_readonly(target, args, count), PyExc_ValueError,
                              "expected a writable tensor, found a read-only one");
}

static int invoke_writing(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  const struct target *target = function_target(((struct callback *)handle)->callable);
  if (find_readonly(target, args, count) >= 0)
    return call_with_gil(refuse_argument, handle, args, count, result);
  return call_symbol(handle, args, count, result);
}

static int call_writing_function(void *handle, const dso_any *args, int32_t count,
                                 dso_any *result) {
  return call_noted(invoke_writing, handle, args, count, result);
}

static int call_writing_function_with_gil(void *handle, const dso_any *args, int32_t count,
                                          dso_any *result) {
  return call_with_gil(call_writing_function, handle, args, count, result);
}

/* ---- The object */

static void delete_strong(struct callback *self) {
  free(self->name);
  if ((self->callable == NULL && self->library == NULL) || !interpreter_runs())
    return; /* its objects end with it */
  PyGILState_STATE gil = PyGILState_Ensure();
  drop_callable(self);
  Py_CLEAR(self->library);
  PyGILState_Release(gil);
}

static void delete_callback(void *self, int flags) {
  if (flags & DSO_DELETE_STRONG) delete_strong(self);
  object_free(self, flags);
}

/* How a Function's code is called: with the GIL or without, and only after a look at the arguments if
 * it writes to one. That look needs the Function, so such calls are noted. */
static dso_safe_call safe_call_of(const struct target *target) {
  int keeps_gil = target->facts.gil_keep;
  if (target->facts.end_written > 0)
    return keeps_gil ? call_writing_function_with_gil : call_writing_function;
  if (keeps_gil) return call_function_with_gil;
  return target->object == NULL ? call_symbol : call_function;
}

static void set_callable(struct callback *self, PyObject *callable) {
  self->callable = Py_NewRef(callable);
  self->function.safe_call = call_python;
  if (!function_check(callable)) return;
  const struct target *target = function_target(callable);
  self->address = target->address;
  self->first = target->handle;
  self->function.safe_call = safe_call_of(target);
}

/* The memory of the last one that nobody kept: nearly every call with a callable makes one. */
static struct callback *spare;

static struct callback *take_spare(void) {
  struct callback *self = spare;
  if (self == NULL) return object_new(sizeof *self, DSO_FUNCTION, delete_callback);
  spare = NULL;
  object_begin(&self->function.object, DSO_FUNCTION, delete_callback);
  return self; /* never retired: that happens to what a context keeps */
}

dso_object *callback_new(PyObject *callable, PyObject *caller) {
  struct callback *self = take_spare();
  if (self == NULL) return raise_no_memory();
  set_callable(self, callable);
  self->owner = self->library = NULL;
  self->caller = caller;
  self->state = caller != NULL ? PyThreadState_Get() : NULL;
  self->thread = caller != NULL ? self->state->thread_id : 0;
  return &self->function.object;
}

/* A Module is called as its entry is; nobody looks for that in an object of this type. */
dso_object *callback_new_module(PyObject *module) {
  dso_object *object = callback_new(module, NULL);
  if (object != NULL) object->type_index = DSO_MODULE;
  return object;
}

void callback_keep(dso_object *object, PyObject *owner) {
  ((struct callback *)object)->owner = Py_NewRef(owner);
}

/* The code of the context's own library is there for as long as the context. */
static PyObject *other_library(PyObject *function, const void *context) {
  PyObject *library = function_library(function);
  if (Py_IS_TYPE(library, &Library_Type) && ((Library *)library)->loaded.context == context)
    return NULL;
  return Py_NewRef(library);
}

void callback_retire(dso_object *object, void *context, const char *name) {
  struct callback *self = (struct callback *)object;
  if (self->function.safe_call == call_symbol)
    self->library = other_library(self->callable, context);
  self->context = context;
  self->name = heap_copy_text(name);
  __atomic_store_n(&self->function.safe_call, look_up_and_call, __ATOMIC_RELEASE);
  __atomic_store_n(&self->is_retired, 1, __ATOMIC_RELEASE);
}

int callback_traverse(const dso_object *object, visitproc visit, void *arg) {
  const struct callback *self = (const struct callback *)object;
  Py_VISIT(self->callable);
  Py_VISIT(self->owner);
  return 0;
}

/* What dropping the callable runs may make one: before, the memory is not spare yet. */
static void make_spare(struct callback *self) {
  Py_DECREF(self->callable);
  Py_XDECREF(self->owner);
  if (spare == NULL) spare = self;
  else object_free(self, DSO_DELETE_WEAK);
}

void callback_end_call(dso_object *object) {
  struct callback *self = (struct callback *)object;
  self->caller = NULL;
  __atomic_store_n(&self->thread, 0, __ATOMIC_RELAXED);
  exception_forget();
  if (object_is_sole(object)) make_spare(self);
  else object_release(object);
}

PyObject *callback_callable(const dso_object *object) {
  return object->deleter == delete_callback ? ((const struct callback *)object)->callable : NULL;
}
