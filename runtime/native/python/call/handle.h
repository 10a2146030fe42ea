/* Handle: an opaque pointer that a library returned. Ownership: see handle.c. */
#ifndef DSO_PACKER_PYTHON_CALL_HANDLE_H
#define DSO_PACKER_PYTHON_CALL_HANDLE_H

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
  PyObject *weak;
  int uses;       /* running calls that got it or a handle whose parent it is */
  int children;   /* handles whose parent it is and that are not yet released */
  int is_closed;  /* released */
  int is_waiting; /* the collector finalised it before its children */
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

/* Make a handle without kind that releases nothing. */
PyObject *handle_borrow(const struct source *source, void *address);

/* Convert an argument: check the kind and that it is open, and mark it as in use. */
int argument_handle(struct call_frame *frame, Py_ssize_t index, PyObject *object);

/* The function is not called, because another argument was refused: a handle that the call would
 * have released is open again. */
void argument_reopen(struct call_frame *frame);

/* End the use, after the call. */
static inline void handle_end_use(Handle *self) {
  for (; self != NULL; self = self->parent) self->uses--;
}

/* Mark all handles of a tuple as in use, or refuse one that is closed; and end the use. */
int handles_begin_use(struct call_frame *frame, Py_ssize_t index, PyObject *kept);
void handles_end_use(PyObject *kept);

/* Return true if a handle is of the same library as a Function. */
int handle_is_of(const Handle *self, PyObject *function);

/* handle_belongs(function, handle): handle_is_of, for fields of structs. */
PyObject *handle_belongs(PyObject *module, PyObject *args);

/* handle_at(function, address, kind): a handle that releases nothing; `kind` is a str or None. */
PyObject *handle_at(PyObject *module, PyObject *args);

#endif
