/* Callback objects: their struct, shared by callback.c and callback_call.c. */
#pragma once

#include "python/call/callback.h"

struct callback {
  dso_function_object function;
  PyObject *callable;    /* NULL after callback_drop */
  PyObject *owner;       /* or NULL */
  PyObject *library;     /* keeps the code of a retired function of another library; or NULL */
  dso_safe_call address; /* of a Function: its code, and the code's first argument */
  void *first;
  int is_retired;
  void *context; /* a retired object looks `name` up in it */
  char *name;
  const char *codes; /* "@point -": the structs that it gets pointers to; in the caller's text */
  int owns_caller;   /* of a kept callback, whose caller is owned */
  /* Until callback_end_call, for the argument of a call: */
  PyObject *caller;     /* its library keeps the code of the objects in the callback's arguments */
  unsigned long thread; /* the calling thread, else 0 */
  PyThreadState *state; /* of that thread */
};

/* ---- Calling one (callback_call.c) */

/* Return the safe call for a new object of this callable. */
dso_safe_call callback_call_of(PyObject *callable);

/* The safe call of a library's function that needs only its code. */
int callback_call_symbol(void *handle, const dso_any *args, int32_t count, dso_any *result);

/* The safe call of a retired object. */
int callback_look_up_and_call(void *handle, const dso_any *args, int32_t count, dso_any *result);

/* ---- Dropping the callable (callback.c) */

/* Queue the drop for the main thread. Called by a thread that was calling the object when it was
 * retired: here, the last reference to the library would unmap the code that the thread returns
 * to. */
void callback_drop_later(struct callback *self);
