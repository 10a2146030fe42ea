/* Path arguments: from Python to bytes and back, as os.fsencode and os.fsdecode convert. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Return the absolute form of a str or bytes path as bytes; NULL with an exception set. */
PyObject *path_bytes(PyObject *argument);

/* Return the path as str, by os.fsdecode. */
PyObject *path_str(PyObject *path);
