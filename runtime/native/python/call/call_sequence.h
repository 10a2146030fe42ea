/* CallSequence: calls bound once to tensors. A graph executor runs it. */
#ifndef DSO_PACKER_PYTHON_CALL_CALL_SEQUENCE_H
#define DSO_PACKER_PYTHON_CALL_CALL_SEQUENCE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/object.h"

extern PyTypeObject CallSequence_Type;

struct call {
  dso_safe_call address;
  void *handle;
  dso_object *callback; /* owned: calls a callable that is not a Function of a library; or NULL */
  dso_any *args;        /* each points to a slot's tensor */
  int32_t count;
};

/* The arguments point to `tensor`, a copy of the bound object's DLTensor. */
struct slot {
  DLTensor tensor;
  int is_written;      /* a function declares that it writes: "*f32" */
  int needs_alignment; /* a function has no declaration, so it may rely on TVM's alignment */
};

enum { MAX_DEVICES = 8 };

struct devices {
  int count;
  DLDevice items[MAX_DEVICES];
};

typedef struct {
  PyObject_HEAD
  PyObject *names;     /* list of str, one per call */
  PyObject *functions; /* list: keeps the Functions that are called directly */
  PyObject *tensors;   /* list: the bound tensors, one per slot */
  struct slot *slots;
  struct call *calls;
  dso_any *args; /* the arguments of all calls, in order */
  Py_ssize_t num_slots, num_calls;
  struct devices devices; /* of the tensors, without the CPU, which needs no synchronisation */
  int is_running;
} CallSequence;

/* tp_new (call_sequence_new.c) */
PyObject *call_sequence_new(PyTypeObject *type, PyObject *args, PyObject *keywords);

#endif
