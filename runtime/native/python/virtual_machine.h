/* VirtualMachine: bytecode bound to constants, functions and devices. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "vm/vm.h"

extern PyTypeObject VirtualMachine_Type;

/* A function of a VirtualMachine, or NULL, possibly with an exception set. */
const struct vm_routine *virtual_machine_routine(PyObject *machine, PyObject *name);

/* _core.vm_builtin_names(): the names of the built-in functions. */
PyObject *vm_builtin_names(PyObject *module, PyObject *none);
