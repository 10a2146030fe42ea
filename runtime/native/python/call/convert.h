/* Python objects to safe-call arguments, and safe-call values to Python objects. */
#ifndef DSO_PACKER_PYTHON_CALL_CONVERT_H
#define DSO_PACKER_PYTHON_CALL_CONVERT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/dlpack.h"
#include "python/call/callee.h"

enum { HOLD_DIMS = 6, MAX_DIMS = 64 };

/* HOLD_ROOM only stores memory that the argument points to. The others are released after the
 * call. */
enum hold_kind {
  HOLD_ROOM,
  HOLD_BUFFER,
  HOLD_DLPACK,
  HOLD_DLPACK_VERSIONED,
  HOLD_FUNCTION,
  HOLD_OBJECT
};

/* Memory and references that one argument needs until the call ends. */
struct hold {
  enum hold_kind kind;
  int64_t *more_dims; /* owned (PyMem): shape and strides beyond HOLD_DIMS, or NULL */
  DLTensor tensor;
  int64_t dims[2 * HOLD_DIMS]; /* the tensor's shape and strides, up to HOLD_DIMS dimensions */
  union {
    dso_byte_array bytes;
    Py_buffer buffer;
    DLManagedTensor *dlpack;
    DLManagedTensorVersioned *dlpack_versioned;
    dso_object *function;
    dso_object *object;
  };
};

/* The arguments of one call, from their conversion to the end of the call. */
struct call_frame {
  const struct callee *callee;
  PyObject *function; /* borrowed: the called Function, or the callable whose result is converted */
  dso_any *args;
  struct hold *holds;
  int num_holds;
  int is_owing;      /* frame_release must be called */
  int is_result;     /* the only value is the result of a callback, not an argument */
  PyObject **arrays; /* the value is an item of a sequence: the arrays made so far; else NULL */
};

/* Add a hold to the frame, which frame_release will release. */
static inline struct hold *frame_hold(struct call_frame *frame, enum hold_kind kind) {
  struct hold *hold = &frame->holds[frame->num_holds++];
  hold->kind = kind;
  hold->more_dims = NULL;
  frame->is_owing |= kind != HOLD_ROOM;
  return hold;
}

/* Point the tensor's shape and strides to memory for `ndim` of each; 0, or -1 with ValueError (ndim
 * outside 0 .. MAX_DIMS) or MemoryError. Both are copied, because the array's owner may change them
 * as soon as the GIL is released. */
int hold_dims(struct call_frame *frame, Py_ssize_t index, struct hold *hold, int ndim);

/* Copy a tensor into the hold and add strides if it has none; 0, or -1 likewise. */
int hold_tensor(struct call_frame *frame, Py_ssize_t index, struct hold *hold,
                const DLTensor *tensor);

/* Set argument `index` to point to the hold's tensor; always 0. */
static inline int frame_pass_tensor(struct call_frame *frame, Py_ssize_t index, struct hold *hold) {
  dso_any *arg = &frame->args[index];
  arg->type_index = DSO_DLTENSOR_PTR;
  arg->small_len = 0;
  arg->v_ptr = &hold->tensor;
  return 0;
}

/* Convert `count` objects to the arguments; 0, or -1 with an exception set. In both cases the
 * caller must call frame_release after the call if is_owing is set. */
int convert_arguments(struct call_frame *frame, PyObject *const *objects, Py_ssize_t count);
void frame_release(struct call_frame *frame);

/* Convert an array, by the buffer protocol or by its `__dlpack__` method; 0, or -1 with an
 * exception set. */
int argument_buffer(struct call_frame *frame, Py_ssize_t index, PyObject *object);
int argument_dlpack(struct call_frame *frame, Py_ssize_t index, PyObject *object, PyObject *method);

/* Call an array's `__dlpack__`: method(max_version=(1, 0)), or method() if the producer does not
 * accept the keyword (DLPack 0.x). NULL with an exception set. */
PyObject *array_call_dlpack(PyObject *method);

/* Errors that several kinds of array share; always -1. */
int refuse_readonly(struct call_frame *frame, Py_ssize_t index);
int refuse_strides(struct call_frame *frame, Py_ssize_t index, Py_ssize_t stride,
                   Py_ssize_t itemsize);

/* The origin of a value, for messages and for the references that the Python object must keep. All
 * borrowed. */
struct source {
  PyObject *callable; /* the value is its result or its argument */
  PyObject *function; /* the Function whose call is running, or NULL */
  int32_t argument;
  int is_result;
};

/* Return the callable's name; NULL with an exception set. */
PyObject *source_name(const struct source *source);

/* Convert a borrowed value to a Python object; NULL with an exception set. */
PyObject *convert_value(const struct source *source, const dso_any *value);

/* A long holds an int64_t, and PyLong_FromLong is faster than PyLong_FromLongLong. */
_Static_assert(sizeof(long) == sizeof(int64_t), "a 64-bit machine");

/* Convert the result of a Function and release it; NULL with an exception set. */
PyObject *convert_result(PyObject *function, const dso_any *result);

/* Return true if the function is declared to write through this argument. */
static inline int argument_is_written(const struct call_frame *frame, Py_ssize_t index) {
  return callee_writes(frame->callee, index);
}

/* Mark a passed tensor as read-only, for the consumers that check it: a virtual machine, and the
 * object that owned_value makes. Always 0. */
int frame_mark_readonly(struct call_frame *frame, Py_ssize_t index);

#endif
