/* Python callables and Functions, as the Function objects of TVM FFI; Modules, as its Modules. */
#ifndef DSO_PACKER_PYTHON_CALL_CALLBACK_H
#define DSO_PACKER_PYTHON_CALL_CALLBACK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/object.h"

/* A new object that calls `callable`, with one reference; NULL with MemoryError. Whoever is called
 * may keep it, and call it from any thread. `caller` is the Function whose argument it is;
 * borrowed until callback_end_call, which drops the reference. */
dso_object *callback_new(PyObject *callable, PyObject *caller);
void callback_end_call(dso_object *object);

/* The same with a Module, as the Module object of TVM FFI. */
dso_object *callback_new_module(PyObject *module);

/* Let an object that callback_new made keep `owner` alive as well. */
void callback_keep(dso_object *object, PyObject *owner);

/* Let later calls of the object look `name` up in `context`, each time: code that remembers the object
 * may still call it. A call that is waiting for the GIL does so, too. */
void callback_retire(dso_object *object, void *context, const char *name);

/* Drop a retired object's callable and owner; if a thread is calling it, the last such call has the
 * main thread do it. Called after in_call_barrier. A function of another library keeps that open
 * until the object is freed, so that calls of it need not be noted. */
void callback_drop(dso_object *object);

/* Visit what keeps such an object's callable and owner alive: for the garbage collector. */
int callback_traverse(const dso_object *object, visitproc visit, void *arg);

/* Convert a Python object to a value that owns what it needs, as the result of `callable`; 0, or -1
 * with an exception set. */
int owned_value(PyObject *callable, PyObject *value, dso_any *result);

/* The same of an item of a sequence; `arrays` is of argument.c. */
int owned_item(PyObject *callable, PyObject *value, PyObject **arrays, dso_any *result);

/* The callable or Module behind such an object, borrowed; NULL for others. */
PyObject *callback_callable(const dso_object *object);

#endif
