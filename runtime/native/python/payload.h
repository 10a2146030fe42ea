/* Payloads and their parts, read by the same code as in libdso. */
#pragma once

#include "python/reader.h"

/* Methods of Reader: see runtime/_core.pyi. */
PyObject *payload_accepted(Reader *self, PyObject *type_key);
PyObject *payload_ndarray(Reader *self, PyObject *none);
PyObject *payload_weights_header(Reader *self, PyObject *args);

PyObject *core_weights_dtypes(PyObject *core, PyObject *none);

PyObject *payload_dtype(DLDataType dtype); /* (code, bits, lanes) */

/* Make a BlobFormatError "<path>: <text>", without the path if it is None or empty. It may have no
 * form in UTF-8, so the core does not add it. Takes over the reference to `text`. */
PyObject *payload_error(PyObject *path, PyObject *text, size_t offset);

/* Raise the core's error as BlobFormatError of a file, unless Python raised one. Returns NULL. */
PyObject *payload_refused(PyObject *path);
