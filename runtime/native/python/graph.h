/* Graph: a graph of operators for Python, parsed and run by the same code as in libdso. */
#ifndef DSO_PACKER_PYTHON_GRAPH_H
#define DSO_PACKER_PYTHON_GRAPH_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject Graph_Type;

#endif
