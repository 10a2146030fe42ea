/* Function objects that are not symbols: results of calls and arguments of callbacks. */
#include "python/call/callback.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "abi/object.h"

static const char TARGET[] = "runtime._core.foreign";

/* The library is released last, because it may contain the object's deleter. */
static void free_callee(PyObject *capsule) {
  PyObject *library = PyCapsule_GetContext(capsule);
  callee_free(PyCapsule_GetPointer(capsule, TARGET));
  Py_XDECREF(library);
}

static PyObject *make_name(const struct source *source) {
  PyObject *origin = callable_name(source->callable);
  PyObject *name = NULL;
  if (origin != NULL && source->is_result) name = PyUnicode_FromFormat("%U()", origin);
  else if (origin != NULL)
    name = PyUnicode_FromFormat("argument %d of %U", source->argument + 1, origin);
  Py_XDECREF(origin);
  return name;
}

static struct callee *make_callee(const struct source *source, dso_object *object) {
  PyObject *name = make_name(source);
  struct callee *callee = name ? PyMem_Calloc(1, sizeof *callee) : NULL;
  if (callee == NULL) {
    Py_XDECREF(name);
    return PyErr_Occurred() ? NULL : raise_no_memory();
  }
  object_retain(object);
  callee_call_object(callee, object);
  callee->name = name;
  return callee;
}

static PyObject *keep_target(struct callee *callee, PyObject *library) {
  PyObject *capsule = PyCapsule_New(callee, TARGET, free_callee);
  if (capsule == NULL) callee_free(callee);
  else PyCapsule_SetContext(capsule, Py_XNewRef(library));
  return capsule;
}

PyObject *function_from_object(const struct source *source, dso_object *object) {
  PyObject *caller = source->function;
  PyObject *callable = callback_callable(object);
  if (callable != NULL) return Py_NewRef(callable);
  struct callee *callee = make_callee(source, object);
  if (callee == NULL) return NULL;
  PyObject *capsule = keep_target(callee, caller ? function_library(caller) : NULL);
  if (capsule == NULL) return NULL;
  PyObject *function = function_new(callee, capsule, caller ? function_owner(caller) : Py_None);
  Py_DECREF(capsule);
  return function;
}
