/* SystemLibrary: the symbols that statically linked models with one prefix registered. */
#ifndef DSO_PACKER_PYTHON_SYSTEM_LIBRARY_H
#define DSO_PACKER_PYTHON_SYSTEM_LIBRARY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject SystemLibrary_Type;

/* Return the place of a SystemLibrary's types by the kind of a handle; NULL until asked. */
PyObject **system_library_types(PyObject *library);

#endif
