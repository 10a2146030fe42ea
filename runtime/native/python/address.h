/* What libraries answer with a bare address: linked parameters, and the metadata of a model. */
#ifndef DSO_PACKER_PYTHON_ADDRESS_H
#define DSO_PACKER_PYTHON_ADDRESS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* call_for_address(function, *ints): the address that it returns, or None. */
PyObject *address_of_call(PyObject *module, PyObject *const *args, Py_ssize_t count);

/* memory_at(address, nbytes, owner): a read-only view; -1 bytes end at a NUL, which is left out.
 * The address is a library's word, and as good as its code. */
PyObject *address_view(PyObject *module, PyObject *args);

#endif
