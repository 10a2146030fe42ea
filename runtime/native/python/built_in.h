/* The global functions that every program has, as Functions. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* _core.built_in_function(name): the same Function each time, or None. */
PyObject *built_in_function(PyObject *module, PyObject *name);

/* _core.built_in_names(): the names of all. */
PyObject *built_in_names(PyObject *module, PyObject *none);
