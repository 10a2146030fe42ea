/* Payloads and their parts, read by the same code as in libdso. */
#ifndef DSO_PACKER_PYTHON_PAYLOAD_H
#define DSO_PACKER_PYTHON_PAYLOAD_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "blob/reader.h"

/* See runtime/_core.pyi: check_payload(data, dialect, path, where, key, start, end, is_last),
 * read_ndarray(data, start, end, path, where), weights_header(header, start, path, where) and
 * weights_dtypes(). */
PyObject *core_check_payload(PyObject *core, PyObject *args);
PyObject *core_read_ndarray(PyObject *core, PyObject *args);
PyObject *core_weights_header(PyObject *core, PyObject *args);
PyObject *core_weights_dtypes(PyObject *core, PyObject *none);

/* A reader of bytes from their start. */
struct reader payload_reader(const Py_buffer *data, const char *dialect, const char *where);

/* Raise the core's error since `count` (raised_count()) as BlobFormatError of a file, unless Python
 * raised one. `path` is a str or None. Returns NULL. */
PyObject *payload_refused(PyObject *path, uint64_t count);

#endif
