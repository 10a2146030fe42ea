/* Function: one callable of a library, through vectorcall over the safe-call ABI. */
#ifndef DSO_PACKER_PYTHON_CALL_FUNCTION_H
#define DSO_PACKER_PYTHON_CALL_FUNCTION_H

#include "python/call/convert.h"
#include "python/call/callee.h"

extern PyTypeObject Function_Type;

static inline int function_check(PyObject *object) { return Py_IS_TYPE(object, &Function_Type); }

/* `library` keeps the callee and its code, and holds nothing that could lead back to the function;
 * `owner` is whatever the function should keep alive. */
PyObject *function_new(const struct callee *callee, PyObject *library, PyObject *owner);

/* The Python object of a Function object, which it retains: a Function, or the Python callable
 * that the object was made of; NULL with an exception set. */
PyObject *function_from_object(const struct source *source, dso_object *object);

/* Of a Function; borrowed. */
const struct callee *function_callee(PyObject *function);
PyObject *function_library(PyObject *function);
PyObject *function_owner(PyObject *function);

#endif
