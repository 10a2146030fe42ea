/* Views of the memory at an address that a library returned, and the addresses of buffers. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* memory_at(address, nbytes, owner): returns a read-only view. If nbytes is -1, the view ends
 * before the first NUL. The address comes from a library and is trusted as its code is. */
PyObject *address_view(PyObject *module, PyObject *args);

/* buffer_address(view): returns the address of the bytes of a memoryview. */
PyObject *buffer_address(PyObject *module, PyObject *view);
