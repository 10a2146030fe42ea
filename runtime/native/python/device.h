/* Device: a DLDevice as a Python object. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dso_abi.h"

extern PyTypeObject Device_Type;

typedef struct {
  PyObject_HEAD
  DLDevice device;
} Device;

static inline int device_check(PyObject *object) { return Py_IS_TYPE(object, &Device_Type); }

PyObject *device_new(DLDevice device);

/* Convert a Device, or an argument of Device(), to a DLDevice: 0, or -1 with an exception set. */
int device_from_object(PyObject *object, DLDevice *device);
