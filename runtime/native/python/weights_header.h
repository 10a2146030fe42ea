/* The header of a safetensors file, for Python. */
#ifndef DSO_PACKER_PYTHON_WEIGHTS_HEADER_H
#define DSO_PACKER_PYTHON_WEIGHTS_HEADER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* weights_header(header, start, path, where) and weights_dtypes(): see runtime/_core.pyi. */
PyObject *core_weights_header(PyObject *core, PyObject *args);
PyObject *core_weights_dtypes(PyObject *core, PyObject *none);

#endif
