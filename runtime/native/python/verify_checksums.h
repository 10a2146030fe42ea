/* The checksum list of a library, verified for Python. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "library/checksums.h"

/* Verify the list `symbol` of a library (library/checksums.h). Returns the CRC-32 of the blob's
 * structure as an int, or None if there is no list or if the list names no blob. NULL with
 * LibraryLoadError set if a checksum differs. */
PyObject *verify_checksums(PyObject *path, const char *symbol, checksums_find find,
                           const void *library);
