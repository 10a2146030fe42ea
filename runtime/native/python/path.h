/* Path arguments, as os.fsencode takes them. */
#ifndef DSO_PACKER_PYTHON_PATH_H
#define DSO_PACKER_PYTHON_PATH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* The absolute form of a str or bytes path, as bytes; NULL with an exception set. */
PyObject *path_bytes(PyObject *argument);

/* The path as str, and as a program shows it: os.fsdecode. */
PyObject *path_str(PyObject *path);

/* Whether dlopen(3) would look elsewhere: it puts folders in the place of $ORIGIN, $LIB and
 * $PLATFORM (ld.so(8), "Dynamic string tokens"), and nothing escapes them. */
int path_has_token(const char *path);

#endif
