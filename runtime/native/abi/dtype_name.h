/* Names of data types: "float32", "int8x4", "bool" (runtime/tensors/dtype.py). */
#pragma once

#include <stddef.h>

#include "dso_abi.h"

enum { DTYPE_NAME_SIZE = 32 };

/* Read a name. Returns 0, or -1 if no data type has it. */
int dtype_from_name(const char *name, size_t nbytes, DLDataType *dtype);

/* Write the name of a data type, with a NUL after it. */
const char *dtype_name(DLDataType dtype, char name[DTYPE_NAME_SIZE]);
