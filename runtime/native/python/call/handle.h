/* Handle: an opaque pointer that a library returned. Ownership: see handle.c. */
#pragma once

#include "python/call/convert.h"

extern PyTypeObject Handle_Type;

typedef struct handle {
  PyObject_HEAD
  void *address;
  PyObject *kind;               /* interned str; NULL: unknown, like C's void * */
  PyObject *library;            /* keeps `release` and the object's code; or NULL */
  PyObject *owner;              /* the module of the function that returned it, or NULL */
  const struct callee *release; /* called with the last reference; or NULL */
  struct handle *parent;        /* owned: the object that must outlive this one, or NULL */
  struct handle *next, **place; /* of the registry: the next one, and what points to this one */
  PyObject *weak;
  struct c_type *type; /* of what it points to; NULL until asked, or if it is unknown */
  PyObject *kept;      /* dict: address of a pointer -> what it refers to; or NULL */
  void *memory;        /* owned: what runtime.new allocated; or NULL */
  int uses;            /* running calls that got it or a handle whose parent it is */
  int views;           /* the uses that are views of the memory */
  int children;        /* handles whose parent it is and that are not yet released */
  int is_closed;       /* released */
  int is_waiting;      /* the collector finalised it before its children */
  int is_const;        /* what it points to must not be written */
  int has_no_type;
  int is_ended; /* finalised, and no longer registered */
} Handle;

static inline int handle_check(PyObject *object) { return Py_IS_TYPE(object, &Handle_Type); }

/* Call the function that releases an object; 0, or -1 with an exception set. */
int handle_call_release(const struct callee *release, void *address);

/* Find the function that releases handles of this function, before its call, whose result could not
 * be released otherwise. NULL with an exception set. */
const struct callee *handle_find_release(PyObject *function);

/* Make a handle of a result with this code; None for NULL. `parent` is the handle that must outlive
 * it, or NULL. NULL with an exception set. */
PyObject *handle_from_result(PyObject *function, void *address, const char *code, Handle *parent);

/* Make a handle of a part of what `parent` points to; if `is_target`, of what a pointer in it points
 * to. `kind` is interned, or NULL. */
Handle *handle_make_part(Handle *parent, void *address, PyObject *kind, int is_target);

/* Free the memory of a handle, or keep it for the next one. */
void handle_give_back(Handle *self);

/* Make a handle of memory that the caller lets it own. */
Handle *handle_make_owner(void *address, PyObject *kind, PyObject *library, PyObject *owner);

/* Make a handle without kind that releases nothing. */
PyObject *handle_borrow(const struct source *source, void *address);

/* Convert an argument: check the kind and that it is open, and mark it as in use. */
int argument_handle(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* Arguments that the function releases are closed for other calls. Before the call
 * argument_close_released closes the other handles of their objects. If the function is not called,
 * because another argument was refused, argument_reopen opens them again. */
void argument_close_released(struct call_frame *frame);
void argument_reopen(struct call_frame *frame);

/* Return true if the handle or one of its parents is closed. */
int handle_is_closed(const Handle *self);

/* Mark a handle as in use by a call or a view. */
static inline void handle_begin_use(Handle *self) {
  for (; self != NULL; self = self->parent) self->uses++;
}

/* End the use, after the call. */
static inline void handle_end_use(Handle *self) {
  for (; self != NULL; self = self->parent) self->uses--;
}

/* Mark all handles of a tuple as in use, or refuse one that is closed; and end the use. */
int handles_begin_use(struct call_frame *frame, Py_ssize_t index, PyObject *kept);
void handles_end_use(PyObject *kept);

/* Return true if two libraries have the same code. */
int handle_same_library(PyObject *one, PyObject *other);

/* Return true if a handle is of the same library as a Function. */
int handle_is_of(const Handle *self, PyObject *function);

/* Return 1 if the function releases handles: a function of its library names it as `free`; 0, or -1
 * with an exception set. */
int handle_is_released_by(PyObject *function);

/* handle_belongs(function, handle): handle_is_of, for fields of structs. */
PyObject *handle_belongs(PyObject *module, PyObject *args);

/* handle_at(function, address, kind, is_const): a handle that releases nothing; `kind` is a str or
 * None. */
PyObject *handle_at(PyObject *module, PyObject *args);

/* ---- Handles of the same object (handle_alias.c) */

/* Register a handle by its address; 0, or -1 without memory. */
int handle_register(Handle *self);
void handle_unregister(Handle *self);

/* Return true if a running call uses a handle of the object. */
int handle_is_used(const Handle *self);

/* Close the other handles of an object that is being released through this one; none, if that
 * releases only the reference of this one and other handles own references too. */
void handle_close_aliases(const Handle *self);

/* Return an open handle of the same object that releases it, or whose memory it is; else NULL. */
Handle *handle_owner_of(Handle *self);

/* Return true if C code must not free the object: a part of another, or memory of runtime.new. */
int handle_is_not_freeable(const Handle *self);

/* Leave the object of a handle that ends to another open handle of it. Return 0 if there is none, or
 * one that owns the object already. */
int handle_bequeath(Handle *self);
