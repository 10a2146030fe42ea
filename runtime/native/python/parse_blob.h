/* A blob, parsed by the same code as in libdso. */
#ifndef DSO_PACKER_PYTHON_PARSE_BLOB_H
#define DSO_PACKER_PYTHON_PARSE_BLOB_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* parse_blob(reader, manifest, structure, load, is_symbol): see runtime/_core.pyi. */
PyObject *core_parse_blob(PyObject *core, PyObject *args);

#endif
