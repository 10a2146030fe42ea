/* A blob, parsed by the same code as in libdso. */
#ifndef DSO_PACKER_PYTHON_PARSE_BLOB_H
#define DSO_PACKER_PYTHON_PARSE_BLOB_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* parse_blob(data, dialect, path, where, manifest, structure, load, is_symbol): see
 * runtime/_core.pyi. */
PyObject *core_parse_blob(PyObject *core, PyObject *args);

/* check_payload(data, dialect, path, where, key, start, end, is_last): see runtime/_core.pyi. */
PyObject *core_check_payload(PyObject *core, PyObject *args);

/* Raise the core's error since `count` (raised_count()) as BlobFormatError of a file, unless Python
 * raised one. `path` is a str or None. Returns NULL. */
PyObject *raise_refused(PyObject *path, uint64_t count);

#endif
