/* Graph: a graph of operators for Python, parsed and run by the same code as in libdso. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject Graph_Type;
