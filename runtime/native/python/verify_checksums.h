/* The checksum list of a library, verified for Python. */
#ifndef DSO_PACKER_PYTHON_VERIFY_CHECKSUMS_H
#define DSO_PACKER_PYTHON_VERIFY_CHECKSUMS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "library/checksums.h"

/* Verify the list `symbol` of a library (library/checksums.h). Returns the CRC-32 of the blob's
 * structure as an int, or None if there is no list or if the list names no blob. NULL with
 * LibraryLoadError set if a checksum differs. */
PyObject *verify_checksums(PyObject *path, const char *symbol, checksums_find find,
                           const void *library);

#endif
