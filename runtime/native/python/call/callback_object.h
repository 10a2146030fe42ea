/* The Function objects of callback.h, and how they are called. */
#ifndef DSO_PACKER_PYTHON_CALL_CALLBACK_OBJECT_H
#define DSO_PACKER_PYTHON_CALL_CALLBACK_OBJECT_H

#include "python/call/callback.h"

struct callback {
  dso_function_object function;
  PyObject *callable;    /* NULL after it was retired and no thread calls it any more */
  PyObject *owner;       /* or NULL */
  PyObject *library;     /* of a retired function of a library: has its code; or NULL */
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

/* ---- Calling one (callback_call.c) */

/* The safe call for a new object of this callable. */
dso_safe_call callback_call_of(PyObject *callable);

/* The one for a function of a library that needs nothing but its code. */
int callback_call_symbol(void *handle, const dso_any *args, int32_t count, dso_any *result);

/* The one for a retired object. */
int callback_look_up_and_call(void *handle, const dso_any *args, int32_t count, dso_any *result);

/* ---- Dropping what one calls (callback.c) */

/* Called by a thread that was calling the object as it was retired. The main thread drops it: here,
 * the last reference to the library would unmap the code that this thread returns to. */
void callback_drop_later(struct callback *self);

#endif
