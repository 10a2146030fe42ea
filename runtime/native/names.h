/* Names of dynamic symbols, as Python lists. */
#ifndef DSO_PACKER_NATIVE_NAMES_H
#define DSO_PACKER_NATIVE_NAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "elf.h"

enum names_of { NAMES_OF_FUNCTIONS, NAMES_OF_UNDEFINED };

/* The names that begin with `prefix`, in table order; NULL with an exception set. */
PyObject *symbol_names(const struct elf_image *image, elf_at at, const void *context,
                       enum names_of wanted, const char *prefix);

#endif
