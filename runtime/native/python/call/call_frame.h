/* The frame of a call: its arguments, and the memory and references that they hold. */
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "abi/dlpack.h"
#include "device/tensor_object.h"
#include "python/call/callee.h"

enum { HOLD_DIMS = 6 };

/* HOLD_MEMORY only stores memory that the argument points to. The others own something that is
 * released after the call. */
enum hold_kind {
  HOLD_MEMORY,
  HOLD_BUFFER,
  HOLD_DLPACK,
  HOLD_DLPACK_VERSIONED,
  HOLD_FUNCTION,
  HOLD_OBJECT,
  HOLD_HANDLE,
  HOLD_PACKED,
  HOLD_KEPT
};

/* Bits of needs_release. */
enum { RELEASE = 1, RELEASE_HANDLES = 2, FINISH = 4, CLOSE = 8, KEEP = 16 };

/* Memory and references that one argument needs until the call ends. */
struct handle;

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
    struct {
      struct handle *handle; /* borrowed: in use until the call ends */
      Py_ssize_t index;      /* the argument that it is */
      int is_released;       /* by the function */
    };
    struct {
      PyObject *kept; /* owned: a Kept */
      Py_ssize_t place;
    };
    PyObject *packed; /* owned: (memoryview, tuple of what it refers to, callable or None) */
  };
};

/* The arguments of one call, from their conversion to the end of the call. */
struct call_frame {
  const struct callee *callee;
  PyObject *function; /* borrowed: the called Function, or the callable whose result is converted */
  dso_any *args;
  struct hold *holds; /* one per argument */
  int num_holds;
  int needs_release; /* frame_release must be called; FINISH: first frame_finish, after success;
                        CLOSE: argument_close_released before the call, else argument_reopen;
                        KEEP: arguments_keep before the call */
  int is_result;     /* the only value is the result of a callback, not an argument */
  PyObject **arrays; /* the value is an item of a sequence: the arrays made so far; else NULL */
  int takes_any;     /* the sequence is passed for a parameter of any type */
};

/* Add a hold to the frame, which frame_release will release. */
static inline struct hold *frame_hold(struct call_frame *frame, enum hold_kind kind) {
  struct hold *hold = &frame->holds[frame->num_holds++];
  hold->kind = kind;
  hold->more_dims = NULL;
  frame->needs_release |= kind == HOLD_HANDLE ? RELEASE_HANDLES : kind == HOLD_MEMORY ? 0 : RELEASE;
  return hold;
}

static inline int hold_set_dims(struct hold *hold, int64_t *dims, int ndim) {
  hold->tensor.ndim = ndim;
  hold->tensor.shape = dims;
  hold->tensor.strides = dims + ndim;
  return 0;
}

/* hold_dims for more than HOLD_DIMS dimensions. */
int hold_more_dims(struct call_frame *frame, Py_ssize_t index, struct hold *hold, int ndim);

/* Point the tensor's shape and strides to memory for `ndim` of each; 0, or -1 with ValueError (ndim
 * outside 0 .. TENSOR_MAX_DIMS) or MemoryError. Both are copied, because the array's owner may
 * change them as soon as the GIL is released. */
static inline int hold_dims(struct call_frame *frame, Py_ssize_t index, struct hold *hold,
                            int ndim) {
  if (ndim < 0 || ndim > HOLD_DIMS) return hold_more_dims(frame, index, hold, ndim);
  return hold_set_dims(hold, hold->dims, ndim);
}

/* Copy a tensor into the hold and add strides if it has none; 0, or -1 likewise. */
int hold_tensor(struct call_frame *frame, Py_ssize_t index, struct hold *hold,
                const DLTensor *tensor);

/* Set argument `index` to a pointer; always 0. */
static inline int frame_pass(struct call_frame *frame, Py_ssize_t index, int32_t type_index,
                             void *pointer) {
  dso_any *arg = &frame->args[index];
  arg->type_index = type_index;
  arg->small_len = 0;
  arg->v_ptr = pointer;
  return 0;
}

/* Return true if the called function chooses by the type of an argument. */
static inline int frame_takes_any(const struct call_frame *frame, Py_ssize_t index) {
  const struct param *param = callee_param(frame->callee, index);
  return param != NULL ? param->kind == CODE_ANY : frame->takes_any;
}

/* Return the mark of a scalar of NumPy, for a function that chooses by its type; else 0. */
static inline uint32_t frame_mark_of(const struct call_frame *frame, Py_ssize_t index, int code,
                                     int bits) {
  uint32_t mark = DSO_TYPED | (uint32_t)code << 8 | (uint32_t)bits << 16;
  return bits != 0 && frame_takes_any(frame, index) ? mark : 0;
}

/* Mark a passed tensor as read-only, for the consumers that check it: a virtual machine, functions of
 * the core, a function that examines its arguments, and the object that convert_owned makes.
 * Always 0. */
int frame_mark_readonly(struct call_frame *frame, Py_ssize_t index);

/* Errors that several kinds of array share; always -1. */
int refuse_readonly(struct call_frame *frame, Py_ssize_t index);
int refuse_strides(struct call_frame *frame, Py_ssize_t index, Py_ssize_t stride,
                   Py_ssize_t itemsize);

/* Write what the function stored in packed structs back to the objects that were passed. Return
 * `value`, or NULL with an exception set, which releases it. */
PyObject *frame_finish(struct call_frame *frame, PyObject *value);

/* Return the handle that was passed as an argument, borrowed, or NULL. */
struct handle *frame_handle(const struct call_frame *frame, Py_ssize_t index);

/* Release all holds. An exception that is set stays set. */
void frame_release(struct call_frame *frame);
