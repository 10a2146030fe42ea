/* CallSequence: calls bound once, over tensors that lie where they lie; what a graph executor runs. */
#ifndef DSO_PACKER_PYTHON_CALL_CALL_SEQUENCE_H
#define DSO_PACKER_PYTHON_CALL_CALL_SEQUENCE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/object.h"

extern PyTypeObject CallSequence_Type;

struct call {
  dso_safe_call address;
  void *handle;
  dso_object *callback; /* a reference: the object that calls what is no plain Function */
  dso_any *args;        /* each points to a slot's tensor */
  int32_t count;
};

/* Where the arguments' tensors are: the DLTensor is a copy of the bound object's. */
struct slot {
  DLTensor tensor;
  int is_written; /* some function says so: "*f32" */
  int is_tvms;    /* some function is not declared, and may count on TVM's alignment */
};

enum { MAX_DEVICES = 8 };

struct devices {
  int count;
  DLDevice items[MAX_DEVICES];
};

typedef struct {
  PyObject_HEAD
  PyObject *names;     /* list of str, one per call */
  PyObject *functions; /* list of the Functions that are called as they are; keeps them */
  PyObject *tensors;   /* list of what is bound, one per slot */
  struct slot *slots;
  struct call *calls;
  dso_any *args; /* of all calls, one behind the other */
  Py_ssize_t num_slots, num_calls;
  struct devices devices; /* beside the CPU, which needs no waiting */
  int is_running;
} CallSequence;

/* tp_new (call_sequence_new.c) */
PyObject *call_sequence_new(PyTypeObject *type, PyObject *args, PyObject *keywords);

#endif
