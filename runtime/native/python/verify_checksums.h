/* __packer_checksums verified, for the Python objects that stand for a library. */
#ifndef DSO_PACKER_PYTHON_VERIFY_CHECKSUMS_H
#define DSO_PACKER_PYTHON_VERIFY_CHECKSUMS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "library/checksums.h"

/* Verify the list `symbol` of a library (checksums.h). Returns the CRC-32 of the blob's structure
 * as an int, None if the library has no list or the list no blob, or NULL with a LibraryLoadError
 * set. */
PyObject *verify_checksums(PyObject *path, const char *symbol, checksums_find find,
                           const void *library);

#endif
