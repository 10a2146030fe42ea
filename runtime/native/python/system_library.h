/* SystemLibrary: the symbols that statically linked models with one prefix registered. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject SystemLibrary_Type;

/* Return the place of a SystemLibrary's types by the kind of a handle; NULL until asked. */
PyObject **system_library_types(PyObject *library);
