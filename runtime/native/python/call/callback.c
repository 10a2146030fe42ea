/* Callback objects: TVM FFI objects that call a Python callable, from creation to deletion.
 *
 * Lifetime and ownership. A callback object is counted by its TVM FFI header and owns a reference
 * to its callable. callback_new returns the first reference, and the call frame holds it until
 * callback_end_call. The called code may retain the object and call it later, from any thread.
 * `caller` and `state` are borrowed and valid only until callback_end_call. If no code retained the
 * object, its memory becomes `spare` and the next callback_new uses it again. Any thread may
 * release the last reference, so the deleter takes the GIL before it drops Python references. After
 * the interpreter has ended, they are leaked.
 *
 * An object in a context's import cache also owns its provider (`owner`). When the last module of
 * the context dies, the object is retired: later calls look `name` up again in the context.
 * callback_drop then drops callable and owner, unless a thread is calling the object. In that case
 * the last such call queues the drop for the main thread, because the last reference to a library
 * would unmap the code that the thread returns to. */
#include "python/call/callback_object.h"

#include <stdlib.h>

#include "python/exception.h"
#include "python/call/function.h"
#include "abi/heap.h"
#include "library/in_call.h"
#include "python/interpreter.h"
#include "python/library.h"

/* ---- Dropping the callable */

/* Dropping a reference may run any code. */
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

void callback_drop_later(struct callback *self) {
  object_retain(&self->function.object);
  if (interpreter_runs() && Py_AddPendingCall(drop_now, self) == 0) return;
  object_release(&self->function.object); /* queue full: the object's deleter drops the callable */
}

/* ---- The object */

static void delete_strong(struct callback *self) {
  free(self->name);
  if ((self->callable == NULL && self->library == NULL) || !interpreter_runs())
    return; /* after the interpreter's end its objects cannot be released */
  PyGILState_STATE gil = PyGILState_Ensure();
  drop_callable(self);
  if (self->owns_caller) Py_CLEAR(self->caller);
  Py_CLEAR(self->library);
  PyGILState_Release(gil);
}

static void delete_callback(void *self, int flags) {
  if (flags & DSO_DELETE_STRONG) delete_strong(self);
  object_free(self, flags);
}

static void set_callable(struct callback *self, PyObject *callable) {
  self->callable = Py_NewRef(callable);
  self->function.safe_call = callback_call_of(callable);
  if (!function_check(callable)) return;
  const struct callee *callee = function_callee(callable);
  self->address = callee->address;
  self->first = callee->handle;
}

/* The memory of the last object that was not kept, for the next: nearly every call with a callable
 * makes an object and frees it. */
static struct callback *spare;

static struct callback *take_spare(void) {
  struct callback *self = spare;
  if (self == NULL) return object_new(sizeof *self, DSO_FUNCTION, delete_callback);
  spare = NULL;
  object_begin(&self->function.object, DSO_FUNCTION, delete_callback);
  return self; /* it was never retired: only objects of an import cache are */
}

dso_object *callback_new(PyObject *callable, PyObject *caller) {
  struct callback *self = take_spare();
  if (self == NULL) return raise_no_memory();
  set_callable(self, callable);
  self->owner = self->library = NULL;
  self->caller = caller;
  self->owns_caller = 0;
  self->codes = NULL;
  self->state = caller != NULL ? PyThreadState_Get() : NULL;
  self->thread = caller != NULL ? self->state->thread_id : 0;
  return &self->function.object;
}

dso_object *callback_new_kept(PyObject *callable, PyObject *caller) {
  dso_object *object = callback_new(callable, NULL);
  struct callback *self = (struct callback *)object;
  if (self == NULL) return NULL;
  self->caller = Py_NewRef(caller);
  self->owns_caller = 1;
  return object;
}

void callback_set_codes(dso_object *object, const char *codes) {
  ((struct callback *)object)->codes = codes;
}

/* The object would call the Module's entry function, but code does not call Module objects. */
dso_object *callback_new_module(PyObject *module) {
  dso_object *object = callback_new(module, NULL);
  if (object != NULL) object->type_index = DSO_MODULE;
  return object;
}

void callback_keep(dso_object *object, PyObject *owner) {
  ((struct callback *)object)->owner = Py_NewRef(owner);
}

/* Return a reference to the function's library, or NULL for the context's own library: that stays
 * open as long as the context. */
static PyObject *other_library(PyObject *function, const void *context) {
  PyObject *library = function_library(function);
  if (Py_IS_TYPE(library, &Library_Type) && ((Library *)library)->loaded.context == context)
    return NULL;
  return Py_NewRef(library);
}

void callback_retire(dso_object *object, void *context, const char *name) {
  struct callback *self = (struct callback *)object;
  if (self->function.safe_call == callback_call_symbol)
    self->library = other_library(self->callable, context);
  self->context = context;
  self->name = heap_copy_text(name);
  __atomic_store_n(&self->function.safe_call, callback_look_up_and_call, __ATOMIC_RELEASE);
  __atomic_store_n(&self->is_retired, 1, __ATOMIC_RELEASE);
}

int callback_traverse(const dso_object *object, visitproc visit, void *arg) {
  const struct callback *self = (const struct callback *)object;
  Py_VISIT(self->callable);
  Py_VISIT(self->owner);
  if (self->owns_caller) Py_VISIT(self->caller);
  return 0;
}

/* Dropping the callable may run code that makes a callback object, so the memory becomes spare
 * afterwards. */
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
  exception_discard();
  if (object_is_sole(object)) make_spare(self);
  else object_release(object);
}

PyObject *callback_callable(const dso_object *object) {
  return object->deleter == delete_callback ? ((const struct callback *)object)->callable : NULL;
}
