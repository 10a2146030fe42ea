/* `ffi.Array`: the function that makes an Array of its arguments. */
#pragma once

#include "abi/object.h"

/* A static Function object, named after TVM FFI's function. */
extern dso_function_object array_function;
