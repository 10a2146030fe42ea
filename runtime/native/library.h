/* Library: one open shared object. */
#ifndef DSO_PACKER_NATIVE_LIBRARY_H
#define DSO_PACKER_NATIVE_LIBRARY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject Library_Type;

#endif
