/* CallSequence: calls bound once to tensors. A graph executor runs it. */
#ifndef DSO_PACKER_PYTHON_CALL_CALL_SEQUENCE_H
#define DSO_PACKER_PYTHON_CALL_CALL_SEQUENCE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "graph/calls.h"

extern PyTypeObject CallSequence_Type;

typedef struct {
  PyObject_HEAD
  PyObject *names;     /* list of str, one per call */
  PyObject *functions; /* list: keeps the Functions that are called directly */
  PyObject *tensors;   /* list: the bound tensors, one per slot */
  struct slot *slots;
  struct call *calls;
  dso_object **callbacks; /* by call, owned: calls what is not a Function of a library; or NULL */
  dso_any *args;          /* the arguments of all calls, in order */
  Py_ssize_t num_slots, num_calls;
  struct call_devices devices; /* of the tensors */
  int is_running;
} CallSequence;

/* tp_new (call_sequence_new.c) */
PyObject *call_sequence_new(PyTypeObject *type, PyObject *args, PyObject *keywords);

#endif
