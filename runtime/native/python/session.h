/* Session: the state of a model, and functions that use it. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject Session_Type;
