/* SystemLibrary: the symbols that models with one prefix registered, as a Library has a file's. */
#ifndef DSO_PACKER_PYTHON_SYSTEM_LIBRARY_H
#define DSO_PACKER_PYTHON_SYSTEM_LIBRARY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject SystemLibrary_Type;

#endif
