/* Copy bytes from file to file, for `packer export`. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* copy_range(source, at, output, to, nbytes): returns the number of copied bytes. It is smaller
 * than `nbytes` if the source ends early or if a read or write fails. */
PyObject *core_copy_range(PyObject *core, PyObject *args);

/* reserve(output, to, nbytes): allocates the blocks of the range at once and ignores errors. (If
 * the file system has no fallocate, posix_fallocate would write to each block.) */
PyObject *core_reserve(PyObject *core, PyObject *args);
