/* Path arguments, as os.fsencode takes them. */
#ifndef DSO_PACKER_NATIVE_PATH_H
#define DSO_PACKER_NATIVE_PATH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The absolute form of a str or bytes path, as bytes; NULL with an exception set. */
PyObject *path_bytes(PyObject *argument);

/* The path as str, and as a program shows it: os.fsdecode. */
PyObject *path_str(PyObject *path);

#endif
