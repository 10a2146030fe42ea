/* Session: the state of a model, and functions that use it. */
#ifndef DSO_PACKER_PYTHON_SESSION_H
#define DSO_PACKER_PYTHON_SESSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject Session_Type;

#endif
