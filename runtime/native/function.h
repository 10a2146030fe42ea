/* Function: one callable of a library, through vectorcall over the safe-call ABI. */
#ifndef DSO_PACKER_NATIVE_FUNCTION_H
#define DSO_PACKER_NATIVE_FUNCTION_H

#include "target.h"

extern PyTypeObject Function_Type;

/* `library` keeps the target and its code; `owner` is whatever the function should keep alive. */
PyObject *function_new(const struct target *target, PyObject *library, PyObject *owner);

#endif
