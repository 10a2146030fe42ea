/* Function: a function of a library, called by vectorcall over the safe-call ABI. */
#pragma once

#include "python/call/convert.h"
#include "python/call/callee.h"

extern PyTypeObject Function_Type;

static inline int function_check(PyObject *object) { return Py_IS_TYPE(object, &Function_Type); }

/* Return true for the types of def, methods, builtins and Functions. */
static inline int callable_is_plain(const PyTypeObject *type) {
  return type == &Function_Type || type == &PyFunction_Type || type == &PyMethod_Type ||
         type == &PyCFunction_Type;
}

/* Make a Function. `library` owns the callee and its code and must not reference the function.
 * `owner` is any object that the function should keep alive. */
PyObject *function_new(const struct callee *callee, PyObject *library, PyObject *owner);

/* Return the Python callable of a callback object, or a Function that retains any other Function
 * object; NULL with an exception set. */
PyObject *function_from_object(const struct source *source, dso_object *object);

/* Return the attributes of a Function, borrowed. */
const struct callee *function_callee(PyObject *function);
PyObject *function_library(PyObject *function);
PyObject *function_owner(PyObject *function);
