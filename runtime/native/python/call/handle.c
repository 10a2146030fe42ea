/* Handle: an opaque pointer that a library returned.
 *
 * Lifetime and ownership. A handle keeps its library and module alive, and its parent: the handle
 * that the function's `lifetime` names, or the parent of that one if it releases nothing. If the
 * function's metadata names a `free` function for this kind, the handle calls it once: in close(),
 * if the program passes the handle to that function, or when the last reference is dropped,
 * possibly by the garbage collector. Each use of a closed handle is an error, and so is the use of
 * a handle whose parent is closed. Such a child is never released, because its memory may have been
 * freed with the parent's.
 *
 * A call may release the GIL, so a handle counts the running calls that use it. It cannot be
 * closed during such a call. */
#include "python/call/handle.h"

#include <stddef.h>
#include <string.h>

#include "abi/object.h"
#include "abi/raised.h"
#include "python/call/function.h"
#include "python/call/handle_members.h"
#include "python/exception.h"

/* ---- Releasing */

int handle_call_release(const struct callee *release, void *address) {
  dso_any argument = {.type_index = DSO_OPAQUE_PTR, .v_ptr = address};
  dso_any result = {.type_index = DSO_NONE};
  uint64_t raised = raised_count();
  PyThreadState *state = release->facts.gil_keep ? NULL : PyEval_SaveThread();
  int status = release->address(release->handle, &argument, 1, &result);
  if (state != NULL) PyEval_RestoreThread(state);
  if (status != 0) (void)raise_call_error(release, status, raised);
  else if (result.type_index >= DSO_OBJECT && result.v_ptr != NULL) object_release(result.v_ptr);
  return status != 0 ? -1 : 0;
}

/* The handle itself, or the nearest closed parent, or NULL if all are open. */
static inline const Handle *find_closed(const Handle *self) {
  while (self != NULL && !self->is_closed) self = self->parent;
  return self;
}

int handle_is_closed(const Handle *self) { return find_closed(self) != NULL; }

/* A finaliser that ran before, of the same cycle, may have passed the handle to a call. */
static void release_at_end(Handle *self) {
  if (find_closed(self) != NULL || self->release == NULL || self->uses > 0) return;
  if (handle_bequeath(self)) return;
  PyObject *pending = exception_take();
  self->is_closed = 1;
  handle_close_aliases(self);
  if (handle_call_release(self->release, self->address) != 0)
    PyErr_WriteUnraisable((PyObject *)self);
  if (pending != NULL) exception_set(pending);
}

/* Called once. The collector finalises in any order, but children are released before their
 * parent: the last one releases a parent that is waiting. */
static void handle_finalize(Handle *self) {
  self->is_waiting = self->children > 0;
  while (self != NULL && self->children == 0) {
    release_at_end(self);
    self = self->parent;
    if (self != NULL && (--self->children > 0 || !self->is_waiting)) break;
  }
}

/* "a handle 'foo'" */
static PyObject *text_of(PyObject *kind) {
  return kind != NULL ? PyUnicode_FromFormat("a handle %R", kind)
                      : PyUnicode_FromString("a handle");
}

static PyObject *handle_close(Handle *self, PyObject *Py_UNUSED(none)) {
  int is_released = find_closed(self) == NULL && self->release != NULL;
  if (is_released ? handle_is_used(self) : self->uses > 0) {
    const char *use = self->views > 0 ? "view" : "call";
    return PyErr_Format(PyExc_ValueError, "%R: in use by a %s; close it after the %s", self, use,
                        use);
  }
  self->is_closed = 1;
  if (is_released) handle_close_aliases(self);
  if (is_released && handle_call_release(self->release, self->address) != 0) return NULL;
  if (is_released) Py_CLEAR(self->kept);
  Py_RETURN_NONE;
}

/* ---- Arguments */

static int refuse(struct call_frame *frame, Py_ssize_t index, PyObject *class, const Handle *self,
                  const char *expected, const char *found) {
  PyObject *text = text_of(self->kind);
  if (text != NULL)
    raise_argument_error(frame, index, class, "expected %s, found %U%s", expected, text, found);
  Py_XDECREF(text);
  return -1;
}

static int refuse_closed(struct call_frame *frame, Py_ssize_t index, const Handle *self) {
  const char *found = self->is_closed ? " that is closed" : " whose parent is closed";
  return refuse(frame, index, PyExc_ValueError, self, "an open handle", found);
}

static int refuse_kind(struct call_frame *frame, Py_ssize_t index, const Handle *self,
                       PyObject *kind) {
  PyObject *expected = text_of(kind);
  const char *text = expected != NULL ? PyUnicode_AsUTF8(expected) : NULL;
  if (text != NULL) refuse(frame, index, PyExc_TypeError, self, text, "");
  Py_XDECREF(expected);
  return -1;
}

/* A parameter without a kind accepts every handle, and a handle without a kind is accepted by every
 * parameter, like C's void *. */
static inline int check_kind(struct call_frame *frame, Py_ssize_t index, const Handle *self) {
  PyObject *kind = callee_kind(frame->callee, index);
  if (kind == NULL || self->kind == NULL) return 0;
  if (kind != self->kind) return refuse_kind(frame, index, self, kind);
  if (self->library == function_library(frame->function)) return 0;
  if (handle_is_of(self, frame->function)) return 0;
  return refuse(frame, index, PyExc_ValueError, self, "a handle of this library",
                " of another library");
}

/* The call of the function that releases the handle closes it: whatever the function does, the
 * program must not use the handle again. */
static int close_by_call(struct call_frame *frame, Py_ssize_t index, Handle *self) {
  if (handle_is_not_freeable(self))
    return refuse(frame, index, PyExc_ValueError, self, "an object that the library made",
                  ", which is a part or runtime.new's; drop its references");
  if (handle_is_used(self))
    return refuse(frame, index, PyExc_ValueError, self, "a handle that no call is using",
                  " in use; release it after that call");
  self->is_closed = 1;
  return 0;
}

int handles_begin_use(struct call_frame *frame, Py_ssize_t index, PyObject *kept) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kept); i++) {
    Handle *self = (Handle *)PyTuple_GET_ITEM(kept, i);
    if (handle_check((PyObject *)self) && find_closed(self) != NULL)
      return refuse_closed(frame, index, self);
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kept); i++)
    if (handle_check(PyTuple_GET_ITEM(kept, i)))
      handle_begin_use((Handle *)PyTuple_GET_ITEM(kept, i));
  return 0;
}

void handles_end_use(PyObject *kept) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kept); i++)
    if (handle_check(PyTuple_GET_ITEM(kept, i)))
      handle_end_use((Handle *)PyTuple_GET_ITEM(kept, i));
}

void argument_close_released(struct call_frame *frame) {
  for (int i = 0; i < frame->num_holds; i++)
    if (frame->holds[i].kind == HOLD_HANDLE && frame->holds[i].is_released)
      handle_close_aliases(frame->holds[i].handle);
  frame->needs_release &= ~CLOSE;
}

void argument_reopen(struct call_frame *frame) {
  for (int i = 0; i < frame->num_holds; i++)
    if (frame->holds[i].kind == HOLD_HANDLE && frame->holds[i].is_released)
      frame->holds[i].handle->is_closed = 0;
  frame->needs_release &= ~CLOSE;
}

/* The common case first: the maker of the handle named the function. */
static int is_released_by(const Handle *self, const struct call_frame *frame) {
  if (self->release == frame->callee) return 1;
  if (frame->callee->facts.num_params != 1) return 0;
  int known = frame->callee->lazy->releases;
  return known >= 0 ? known : handle_is_released_by(frame->function);
}

/* Return true for characters that a NUL ends; a pointer to one character is trusted, as in C. */
static int is_text(const Handle *self) {
  if (self->kind == NULL || PyUnicode_CompareWithASCIIString(self->kind, "char") != 0) return 0;
  if (self->type == NULL || self->type->how != C_CHARS) return 1;
  return memchr(self->address, 0, (size_t)self->type->size) != NULL;
}

int argument_handle(struct call_frame *frame, Py_ssize_t index, PyObject *object) {
  Handle *self = (Handle *)object;
  if (find_closed(self) != NULL) return refuse_closed(frame, index, self);
  if (check_kind(frame, index, self) != 0) return -1;
  const struct param *param = callee_param(frame->callee, index);
  enum code_kind kind = param != NULL ? param->kind : CODE_HANDLE;
  if (kind == CODE_STRUCT || kind == CODE_STRINGS || (kind == CODE_POINTERS && self->kind != NULL))
    return argument_by_code(frame, index, object);
  if (kind == CODE_PLAIN && strcmp(param->code, "fn") == 0 && handle_is_function(self))
    return argument_callable(frame, index, object);
  if ((kind == CODE_PLAIN || kind == CODE_BYTES) && handle_has_numbers(self))
    return argument_buffer(frame, index, object);
  int is_released = is_released_by(self, frame);
  if (is_released < 0 || (is_released && close_by_call(frame, index, self) != 0)) return -1;
  handle_begin_use(self);
  struct hold *hold = frame_hold(frame, HOLD_HANDLE);
  hold->handle = self;
  hold->index = index;
  hold->is_released = is_released;
  if (is_released) frame->needs_release |= CLOSE;
  int is_str = kind == CODE_TEXT && is_text(self);
  return frame_pass(frame, index, is_str ? DSO_RAW_STR : DSO_OPAQUE_PTR, self->address);
}

/* ---- The type */

static int handle_traverse(Handle *self, visitproc visit, void *arg) {
  Py_VISIT(self->library);
  Py_VISIT(self->owner);
  Py_VISIT((PyObject *)self->parent);
  Py_VISIT((PyObject *)self->type);
  Py_VISIT(self->kept);
  return 0;
}

/* The library and the parent are kept, because a cleared handle can still be used. */
static int handle_clear(Handle *self) {
  Py_CLEAR(self->owner);
  Py_CLEAR(self->kept);
  return 0;
}

static void drop_references(Handle *self) {
  if (self->weak != NULL) PyObject_ClearWeakRefs((PyObject *)self);
  if (self->memory != NULL) PyMem_Free(self->memory);
  Py_XDECREF(self->kept);
  Py_XDECREF((PyObject *)self->type);
  Py_XDECREF((PyObject *)self->parent);
  Py_XDECREF(self->owner);
  Py_XDECREF(self->library);
  Py_XDECREF(self->kind);
  handle_give_back(self);
}

static void handle_dealloc(Handle *self) {
  if (self->is_ended) { /* the trashcan calls this again */
  } else if (self->release != NULL || PyObject_GC_IsFinalized((PyObject *)self)) {
    if (PyObject_CallFinalizerFromDealloc((PyObject *)self) < 0) return; /* resurrected */
    PyObject_GC_UnTrack(self);
  } else {
    PyObject_GC_UnTrack(self);
    handle_finalize(self); /* nothing can resurrect it */
  }
  if (self->place != NULL) handle_unregister(self);
  self->place = NULL;
  self->is_ended = 1;
  if (self->parent == NULL || Py_REFCNT(self->parent) > 1) {
    drop_references(self);
    return;
  }
  Py_TRASHCAN_BEGIN(self, handle_dealloc) /* parents may be a long chain */
      drop_references(self);
  Py_TRASHCAN_END
}

static PyObject *handle_kind(Handle *self, void *Py_UNUSED(closure)) {
  return Py_NewRef(self->kind != NULL ? self->kind : Py_None);
}

static PyObject *handle_address(Handle *self, void *Py_UNUSED(closure)) {
  return PyLong_FromVoidPtr(self->address);
}

static PyObject *handle_closed(Handle *self, void *Py_UNUSED(closure)) {
  return PyBool_FromLong(find_closed(self) != NULL);
}

static PyObject *handle_repr(Handle *self) {
  const char *state = find_closed(self) != NULL ? ", closed" : "";
  if (self->kind == NULL) return PyUnicode_FromFormat("<Handle at %p%s>", self->address, state);
  return PyUnicode_FromFormat("<Handle %U at %p%s>", self->kind, self->address, state);
}

static PyObject *handle_compare(Handle *self, PyObject *object, int operation) {
  if (!handle_check(object) || (operation != Py_EQ && operation != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const Handle *other = (Handle *)object;
  int is_equal = self->address == other->address && self->kind == other->kind;
  return PyBool_FromLong(is_equal == (operation == Py_EQ));
}

static Py_hash_t handle_hash(Handle *self) {
  Py_hash_t hash = (Py_hash_t)((uintptr_t)self->address >> 4 ^ (uintptr_t)self->kind);
  return hash == -1 ? -2 : hash;
}

static PyObject *handle_enter(PyObject *self, PyObject *Py_UNUSED(none)) { return Py_NewRef(self); }

static PyObject *handle_exit(Handle *self, PyObject *Py_UNUSED(args)) {
  return handle_close(self, NULL);
}

static PyMethodDef handle_methods[] = {
    {"close", (PyCFunction)handle_close, METH_NOARGS,
     "close($self, /)\n--\n\nRelease the object now; later uses are errors."},
    {"array", (PyCFunction)handle_array, METH_O,
     "array($self, count, /)\n--\n\nReturn `count` items; None: the ones before a zero."},
    {"pointer", (PyCFunction)handle_pointer, METH_O,
     "pointer($self, name, /)\n--\n\nReturn what a pointer member points to, also char *."},
    {"__dir__", handle_dir, METH_NOARGS, NULL},
    {"__enter__", handle_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)handle_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef handle_getset[] = {
    {"kind", (getter)handle_kind, NULL, "The name of the C struct, or None.", NULL},
    {"address", (getter)handle_address, NULL, "The pointer as an int.", NULL},
    {"closed", (getter)handle_closed, NULL, "True if it cannot be used any more.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyTypeObject Handle_Type = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "runtime.Handle",
    .tp_doc =
        "An object of a library. The members of a struct whose layout is known are attributes.",
    .tp_basicsize = sizeof(Handle),
    .tp_weaklistoffset = offsetof(Handle, weak),
    .tp_repr = (reprfunc)handle_repr,
    .tp_hash = (hashfunc)handle_hash,
    .tp_call = handle_call,
    .tp_getattro = handle_getattro,
    .tp_setattro = handle_setattro,
    .tp_as_number = &handle_number,
    .tp_as_sequence = &handle_sequence,
    .tp_as_mapping = &handle_mapping,
    .tp_as_buffer = &handle_buffer,
    .tp_richcompare = (richcmpfunc)handle_compare,
    .tp_traverse = (traverseproc)handle_traverse,
    .tp_clear = (inquiry)handle_clear,
    .tp_finalize = (destructor)handle_finalize,
    .tp_dealloc = (destructor)handle_dealloc,
    .tp_methods = handle_methods,
    .tp_getset = handle_getset,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};
