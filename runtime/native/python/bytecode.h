/* Bytecode: what a file says, verified; virtual machines are made of it. */
#ifndef DSO_PACKER_PYTHON_BYTECODE_H
#define DSO_PACKER_PYTHON_BYTECODE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "vm/code.h"

typedef struct {
  PyObject_HEAD
  PyObject *functions; /* tuple; the names are of its strings */
  Py_buffer offsets, words;
  struct vm_code code;
} Bytecode;

extern PyTypeObject Bytecode_Type;

#endif
