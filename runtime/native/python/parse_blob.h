/* A blob, parsed by the same code as in libdso. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* parse_blob(reader, manifest, structure, is_symbol): see runtime/_core.pyi. */
PyObject *core_parse_blob(PyObject *core, PyObject *args);
