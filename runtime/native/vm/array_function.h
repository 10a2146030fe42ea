/* `ffi.Array`: the function that makes an Array of its arguments. */
#ifndef DSO_PACKER_VM_ARRAY_FUNCTION_H
#define DSO_PACKER_VM_ARRAY_FUNCTION_H

#include "abi/object.h"

/* A static Function object, named after TVM FFI's function. */
extern dso_function_object array_function;

#endif
