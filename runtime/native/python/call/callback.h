/* Callback objects: TVM FFI objects that call a Python callable. Ownership: see callback.c. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/object.h"

/* Make a Function object that calls `callable`, with one reference; NULL with MemoryError. The
 * called code may keep it and call it from any thread. `caller` is the Function whose argument it
 * is, or NULL. It is borrowed until callback_end_call, which also releases the object. */
dso_object *callback_new(PyObject *callable, PyObject *caller);
void callback_end_call(dso_object *object);

/* Make a Function object that C code may call after the call of `caller`, which it owns. */
dso_object *callback_new_kept(PyObject *callable, PyObject *caller);

/* Set the codes of what it gets pointers to, from the metadata of its caller. */
void callback_set_codes(dso_object *object, const char *codes);

/* Make a Module object for a Module; likewise. */
dso_object *callback_new_module(PyObject *module);

/* Store a reference to `owner` in an object of callback_new. */
void callback_keep(dso_object *object, PyObject *owner);

/* Make every later call of the object look `name` up in `context`, because code that kept the
 * object may still call it. Calls that are waiting for the GIL do so too. */
void callback_retire(dso_object *object, void *context, const char *name);

/* Drop the callable and owner of a retired object. If a thread is calling it, the last such call
 * queues this for the main thread. Call in_call_barrier first. A retired function of another
 * library keeps that library open until the object is freed, so its calls need not be recorded. */
void callback_drop(dso_object *object);

/* For the garbage collector: visit the object's callable and owner. */
int callback_traverse(const dso_object *object, visitproc visit, void *arg);

/* Return the callable or Module of a callback object, borrowed; NULL for other objects. */
PyObject *callback_callable(const dso_object *object);
