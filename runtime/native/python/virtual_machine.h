/* VirtualMachine: bytecode bound to what it calls, whose functions Python calls. */
#ifndef DSO_PACKER_PYTHON_VIRTUAL_MACHINE_H
#define DSO_PACKER_PYTHON_VIRTUAL_MACHINE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

extern PyTypeObject VirtualMachine_Type;

/* vm_builtin_names(): those of the machine's own functions. */
PyObject *vm_builtin_names(PyObject *module, PyObject *none);

#endif
