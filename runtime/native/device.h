/* DLDevice as Python shows it. */
#ifndef DSO_PACKER_NATIVE_DEVICE_H
#define DSO_PACKER_NATIVE_DEVICE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../include/dso_abi.h"

/* ("cpu", 0); a type without a name is ("device[42]", 0). */
PyObject *device_pair(DLDevice device);

#endif
