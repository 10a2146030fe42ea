/* Callables and user data that C code keeps after the call that passed them.
 *
 * A Kept owns one of them: a callback object, or any Python object whose address is the user data. It
 * is stored in the handle that it belongs to (`kept`), or for ever. C code has the address of a
 * callback through a thunk, which finds nothing when the Kept is gone (glue_kept.h). The user data is
 * the address of the object: while a Kept owns an object, a pointer with its address is that object,
 * since no other object can be there. */
#include "python/call/kept.h"

#include "abi/object.h"
#include "python/call/callback.h"
#include "python/call/function.h"
#include "python/call/handle_members.h"
#include "python/exception.h"

typedef struct {
  PyObject_HEAD
  dso_object *function; /* owned; NULL for user data */
  PyObject *data;       /* owned; NULL for a callback */
} Kept;

/* dict: address of user data -> the number of Kepts that own it; guarded by the GIL. And what is kept
 * for ever. */
static PyObject *carried, *forever;

/* ---- Kept */

static int kept_traverse(Kept *self, visitproc visit, void *arg) {
  Py_VISIT(self->data);
  if (self->function == NULL || !object_is_held_once(self->function)) return 0;
  return callback_traverse(self->function, visit, arg);
}

/* Add to the number of Kepts that own an object; 0, or -1 with an exception set. */
static int count_data(PyObject *data, long more) {
  PyObject *key = PyLong_FromVoidPtr(data);
  if (carried == NULL) carried = PyDict_New();
  if (key == NULL || carried == NULL) return -1;
  PyObject *known = PyDict_GetItemWithError(carried, key);
  long count = (known != NULL ? PyLong_AsLong(known) : 0) + more;
  PyObject *number = count > 0 ? PyLong_FromLong(count) : NULL;
  int status = PyErr_Occurred() ? -1
               : number != NULL ? PyDict_SetItem(carried, key, number)
               : known != NULL  ? PyDict_DelItem(carried, key)
                                : 0;
  Py_XDECREF(number);
  Py_DECREF(key);
  return status;
}

static int kept_clear(Kept *self) {
  dso_object *function = self->function;
  PyObject *data = self->data;
  self->function = NULL;
  self->data = NULL;
  if (data != NULL && count_data(data, -1) != 0) PyErr_WriteUnraisable(NULL);
  Py_XDECREF(data);
  if (function != NULL) object_release(function);
  return 0;
}

static void kept_dealloc(Kept *self) {
  PyObject_GC_UnTrack(self);
  PyObject *pending = exception_take();
  (void)kept_clear(self);
  if (pending != NULL) exception_set(pending);
  PyObject_GC_Del(self);
}

PyTypeObject Kept_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime._core.Kept",
    .tp_basicsize = sizeof(Kept),
    .tp_traverse = (traverseproc)kept_traverse,
    .tp_clear = (inquiry)kept_clear,
    .tp_dealloc = (destructor)kept_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

/* Takes over the reference to `function`. */
static Kept *kept_new(dso_object *function, PyObject *data) {
  Kept *self = PyObject_GC_New(Kept, &Kept_Type);
  if (self == NULL) {
    if (function != NULL) object_release(function);
    return NULL;
  }
  self->function = function;
  self->data = NULL;
  PyObject_GC_Track(self);
  if (data == NULL) return self;
  if (count_data(data, 1) != 0) Py_CLEAR(self);
  else self->data = Py_NewRef(data);
  return self;
}

PyObject *kept_data_at(const void *address) {
  if (carried == NULL || PyDict_GET_SIZE(carried) == 0) return NULL;
  PyObject *key = PyLong_FromVoidPtr((void *)(uintptr_t)address);
  PyObject *count = key != NULL ? PyDict_GetItemWithError(carried, key) : NULL;
  Py_XDECREF(key);
  return count != NULL ? Py_NewRef((PyObject *)(uintptr_t)address) : NULL;
}

/* ---- Arguments */

int argument_kept(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  const struct param *param = callee_param(frame->callee, index);
  int is_data = param != NULL && param->kind == CODE_VOID;
  if (param == NULL || param->kept == KEPT_NOT || object == Py_None) return 1;
  if (!is_data && handle_check(object) && !handle_is_function((Handle *)object)) return 1;
  if (is_data ? handle_check(object) : param->kept == KEPT_CALL || !PyCallable_Check(object))
    return 1;
  dso_object *function = is_data ? NULL : callback_new_kept(object, frame->function);
  if (!is_data && function == NULL) return -1;
  if (!is_data) callback_set_codes(function, facts_callback(&frame->callee->facts, param->name));
  Kept *kept = kept_new(function, is_data ? object : NULL);
  if (kept == NULL) return -1;
  struct hold *hold = frame_hold(frame, HOLD_KEPT);
  hold->kept = (PyObject *)kept;
  hold->place = index;
  frame->needs_release |= KEEP;
  if (is_data) return frame_pass(frame, index, DSO_OPAQUE_PTR, object);
  return frame_pass(frame, index, DSO_FUNCTION, function);
}

/* The same function or object for the same parameter is kept once. A bound method is made anew at each
 * use, so methods are compared. */
static PyObject *key_of(const struct call_frame *frame, const struct hold *hold) {
  const Kept *kept = (const Kept *)hold->kept;
  PyObject *object = kept->data != NULL ? kept->data : callback_callable(kept->function);
  int is_method = Py_IS_TYPE(object, &PyMethod_Type);
  PyObject *own = is_method ? Py_NewRef(object) : PyLong_FromVoidPtr(object);
  PyObject *callee = PyLong_FromVoidPtr((void *)(uintptr_t)frame->callee);
  return Py_BuildValue("(NnN)", callee, hold->place, own);
}

/* Return the dict that keeps an argument, borrowed; NULL with an exception set. */
static PyObject *keeper_of(const struct call_frame *frame, int until) {
  Handle *handle = until >= 0 ? frame_handle(frame, until) : NULL;
  Handle *owner = handle != NULL ? handle_owner_of(handle) : NULL;
  PyObject **kept = owner != NULL ? &owner->kept : &forever;
  if (*kept == NULL) *kept = PyDict_New();
  return *kept;
}

static int keep(struct call_frame *frame, struct hold *hold) {
  int until = callee_param(frame->callee, hold->place)->kept;
  if (until == KEPT_CALL) return 0;
  PyObject *keeper = keeper_of(frame, until), *key = keeper != NULL ? key_of(frame, hold) : NULL;
  if (key == NULL) return -1;
  PyObject *known = PyDict_GetItemWithError(keeper, key);
  int status = PyErr_Occurred() ? -1 : 0;
  if (known != NULL) {
    Py_SETREF(hold->kept, Py_NewRef(known));
    const Kept *kept = (const Kept *)known;
    frame->args[hold->place].v_ptr = kept->data != NULL ? (void *)kept->data : kept->function;
  } else if (status == 0) status = PyDict_SetItem(keeper, key, hold->kept);
  Py_DECREF(key);
  return status;
}

int arguments_keep(struct call_frame *frame) {
  frame->needs_release &= ~KEEP;
  for (int i = 0; i < frame->num_holds; i++)
    if (frame->holds[i].kind == HOLD_KEPT && keep(frame, &frame->holds[i]) != 0) return -1;
  return 0;
}
