/* The names of dynamic symbols, as Python lists. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "elf/elf.h"

/* The text of a name, borrowed; NULL without an exception if no symbol has it, because of a NUL or of a
 * lone surrogate. */
const char *symbol_name(PyObject *name);

/* List the functions and data that an object defines and whose names begin with `prefix`, in the
 * order of the symbol table. NULL with an exception set on failure. */
PyObject *symbol_names(const struct elf_image *image, elf_at at, const void *context,
                       const char *prefix);
