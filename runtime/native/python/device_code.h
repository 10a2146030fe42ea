/* DeviceCode: the code of a device module, whose kernels are Functions. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject DeviceCode_Type;

/* _core.has_driver(type_key): returns True if the driver library for these modules is installed.
 * Opens that library but does not call it. */
PyObject *has_driver(PyObject *module, PyObject *type_key);

/* _core.cuda_images(data): (kind, capability, suffix) of each image; ValueError for other data. */
PyObject *core_cuda_images(PyObject *module, PyObject *data);
