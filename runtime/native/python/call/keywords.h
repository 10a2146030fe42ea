/* Keyword arguments of a declared function. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python/call/callee.h"

/* Store the arguments of a vectorcall in `objects`, borrowed, in the order of the parameters; it has
 * room for all of them. Return their number, or -1 with an exception set. */
Py_ssize_t keywords_place(PyObject *function, const struct callee *callee, PyObject *const *given,
                          Py_ssize_t count, PyObject *keywords, PyObject **objects);

/* The arguments of a function without declared types, in the order of its names: a tuple, or NULL with
 * an exception set. */
PyObject *keywords_order(PyObject *function, PyObject *const *given, Py_ssize_t count,
                         PyObject *keywords);
