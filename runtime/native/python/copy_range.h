/* Bytes from file to file, for `packer export`. */
#ifndef DSO_PACKER_PYTHON_COPY_RANGE_H
#define DSO_PACKER_PYTHON_COPY_RANGE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* copy_range(source, at, output, to, nbytes): how many bytes were copied through memory, fewer where
 * one of the descriptors cannot be read or written, or the source ends. */
PyObject *core_copy_range(PyObject *core, PyObject *args);

/* reserve(output, to, nbytes): has the file system find the blocks of what is about to be written, all
 * at once; None, also where it cannot. (posix_fallocate would write to each block there.) */
PyObject *core_reserve(PyObject *core, PyObject *args);

#endif
