/* Bytecode: the verified tables of a file, from which virtual machines are made. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "vm/code.h"

typedef struct {
  PyObject_HEAD
  PyObject *functions; /* tuple; code.functions borrows the names of its strings */
  Py_buffer offsets, words;
  struct vm_code code;
} Bytecode;

extern PyTypeObject Bytecode_Type;
