/* Python objects to safe-call arguments, and safe-call values to Python objects. */
#ifndef DSO_PACKER_PYTHON_CALL_CONVERT_H
#define DSO_PACKER_PYTHON_CALL_CONVERT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/dlpack.h"
#include "python/call/callee.h"

enum { HOLD_DIMS = 6, MAX_DIMS = 64 };

/* HOLD_ROOM is only room for what the argument points to; the others are to be released. */
enum hold_kind {
  HOLD_ROOM,
  HOLD_BUFFER,
  HOLD_DLPACK,
  HOLD_DLPACK_VERSIONED,
  HOLD_FUNCTION,
  HOLD_OBJECT
};

/* What one argument needs until the call is over. */
struct hold {
  enum hold_kind kind;
  int64_t *more_dims; /* PyMem, or NULL */
  DLTensor tensor;
  int64_t dims[2 * HOLD_DIMS]; /* the tensor's shape and strides, unless it has more dimensions */
  union {
    dso_byte_array bytes;
    Py_buffer buffer;
    DLManagedTensor *dlpack;
    DLManagedTensorVersioned *dlpack_versioned;
    dso_object *function;
    dso_object *object;
  };
};

/* The arguments of one call while they are converted. */
struct call_frame {
  const struct callee *callee;
  PyObject *function; /* the Function that is called, or the callback; borrowed */
  dso_any *args;
  struct hold *holds;
  int num_holds;
  int is_owing;      /* some hold is more than room */
  int is_result;     /* the one value is no argument, but what a callback gives */
  PyObject **arrays; /* of an item of a sequence: what the others became (argument.c); or NULL */
};

/* A new hold of the frame; it counts from here on and will be released. */
static inline struct hold *frame_hold(struct call_frame *frame, enum hold_kind kind) {
  struct hold *hold = &frame->holds[frame->num_holds++];
  hold->kind = kind;
  hold->more_dims = NULL;
  frame->is_owing |= kind != HOLD_ROOM;
  return hold;
}

/* Let the tensor's shape and strides point to room for `ndim` of each; 0, or -1 with ValueError
 * (ndim beyond 0 .. MAX_DIMS) or MemoryError. Both are copied, since whoever owns them may
 * change them as soon as the GIL is released. */
int hold_dims(struct call_frame *frame, Py_ssize_t index, struct hold *hold, int ndim);

/* Copy a tensor that someone else describes into the hold, with strides in any case; likewise. */
int hold_tensor(struct call_frame *frame, Py_ssize_t index, struct hold *hold,
                const DLTensor *tensor);

/* Set argument `index` to the hold's tensor; always 0. */
static inline int frame_pass_tensor(struct call_frame *frame, Py_ssize_t index, struct hold *hold) {
  dso_any *arg = &frame->args[index];
  arg->type_index = DSO_DLTENSOR_PTR;
  arg->small_len = 0;
  arg->v_ptr = &hold->tensor;
  return 0;
}

/* Convert `count` objects to the arguments; 0, or -1 with an exception set. Holds that the frame
 * got stay until frame_release, which the caller owes it either way if is_owing. */
int convert_arguments(struct call_frame *frame, PyObject *const *objects, Py_ssize_t count);
void frame_release(struct call_frame *frame);

/* Arrays: argument_buffer for the buffer protocol, argument_dlpack for a `__dlpack__` method;
 * 0, or -1 with an exception set. */
int argument_buffer(struct call_frame *frame, Py_ssize_t index, PyObject *object);
int argument_dlpack(struct call_frame *frame, Py_ssize_t index, PyObject *object, PyObject *method);

/* Call an array's `__dlpack__`, method(max_version=(1, 0)); a producer of DLPack 0.x does not know
 * the keyword. NULL with an exception set. */
PyObject *array_call_dlpack(PyObject *method);

/* Refusals that several kinds of array share; always -1. */
int refuse_readonly(struct call_frame *frame, Py_ssize_t index);
int refuse_strides(struct call_frame *frame, Py_ssize_t index, Py_ssize_t stride,
                   Py_ssize_t itemsize);

/* Where a value comes from: for messages, and for what has to stay while it is used. Borrowed. */
struct source {
  PyObject *callable; /* whose result or argument it is */
  PyObject *function; /* the Function that is being called, or NULL */
  int32_t argument;
  int is_result;
};

/* The callable's name; NULL with an exception set. */
PyObject *source_name(const struct source *source);

/* The Python object of a value, which is borrowed; NULL with an exception set. */
PyObject *convert_value(const struct source *source, const dso_any *value);

/* A long holds an int64_t, and PyLong_FromLong is faster than PyLong_FromLongLong. */
_Static_assert(sizeof(long) == sizeof(int64_t), "a 64-bit machine");

/* The same of a Function's result, whose reference is used up. */
PyObject *convert_result(PyObject *function, const dso_any *result);

/* Whether the function writes through this argument. */
static inline int argument_is_written(const struct call_frame *frame, Py_ssize_t index) {
  return callee_writes(frame->callee, index);
}

/* Let a tensor that was passed say that its memory may only be read, to those who ask: a virtual
 * machine, and the object that owned_value makes of it. Always 0. */
int frame_mark_readonly(struct call_frame *frame, Py_ssize_t index);

#endif
