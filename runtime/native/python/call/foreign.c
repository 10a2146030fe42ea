/* Functions that are no symbols: what calls return, and what callbacks are given. */
#include "python/call/callback.h"
#include "python/exception.h"
#include "python/call/function.h"
#include "abi/object.h"

static const char TARGET[] = "runtime._core.foreign";

/* The library goes last: the object's deleter may lie in it. */
static void free_target(PyObject *capsule) {
  PyObject *library = PyCapsule_GetContext(capsule);
  target_free(PyCapsule_GetPointer(capsule, TARGET));
  Py_XDECREF(library);
}

static PyObject *make_name(const struct source *source) {
  PyObject *origin = source_name(source);
  PyObject *name = NULL;
  if (origin != NULL && source->is_result) name = PyUnicode_FromFormat("%U()", origin);
  else if (origin != NULL)
    name = PyUnicode_FromFormat("argument %d of %U", source->argument + 1, origin);
  Py_XDECREF(origin);
  return name;
}

static struct target *make_target(const struct source *source, dso_object *object) {
  PyObject *name = make_name(source);
  struct target *target = name ? PyMem_Calloc(1, sizeof *target) : NULL;
  if (target == NULL) {
    Py_XDECREF(name);
    return PyErr_Occurred() ? NULL : raise_no_memory();
  }
  object_retain(object);
  target_call_object(target, object);
  target->name = name;
  return target;
}

static PyObject *keep_target(struct target *target, PyObject *library) {
  PyObject *capsule = PyCapsule_New(target, TARGET, free_target);
  if (capsule == NULL) target_free(target);
  else PyCapsule_SetContext(capsule, Py_XNewRef(library));
  return capsule;
}

PyObject *function_from_object(const struct source *source, dso_object *object) {
  PyObject *caller = source->function;
  PyObject *callable = callback_callable(object);
  if (callable != NULL) return Py_NewRef(callable);
  struct target *target = make_target(source, object);
  if (target == NULL) return NULL;
  PyObject *capsule = keep_target(target, caller ? function_library(caller) : NULL);
  if (capsule == NULL) return NULL;
  PyObject *function = function_new(target, capsule, caller ? function_owner(caller) : Py_None);
  Py_DECREF(capsule);
  return function;
}
