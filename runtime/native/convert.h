/* Python objects to safe-call arguments, and a safe call's result to a Python object. */
#ifndef DSO_PACKER_NATIVE_CONVERT_H
#define DSO_PACKER_NATIVE_CONVERT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "dlpack.h"
#include "target.h"

enum { HOLD_DIMS = 6, MAX_DIMS = 64 };

/* What one argument needs until the call is over. */
struct hold {
  enum { HOLD_BYTES, HOLD_BUFFER, HOLD_DLPACK, HOLD_DLPACK_VERSIONED } kind;
  union {
    dso_byte_array bytes;
    Py_buffer buffer;
    DLManagedTensor *dlpack;
    DLManagedTensorVersioned *dlpack_versioned;
  };
  DLTensor tensor;
  int64_t strides[HOLD_DIMS]; /* the tensor's, in elements, unless it has more dimensions: */
  int64_t *more_strides;      /* PyMem, or NULL */
};

/* The arguments of one call while they are converted. */
struct frame {
  const struct target *target;
  dso_any *args;
  struct hold *holds;
  int num_holds;
};

/* Convert `object` to argument `index`; 0, or -1 with an exception set. Holds that the frame got
 * stay until frame_release, which the caller owes it either way. */
int convert_argument(struct frame *frame, Py_ssize_t index, PyObject *object);
void frame_release(struct frame *frame);

/* Arrays: argument_buffer for the buffer protocol, argument_dlpack for a `__dlpack__` method;
 * 0, or -1 with an exception set. */
int argument_buffer(struct frame *frame, Py_ssize_t index, PyObject *object);
int argument_dlpack(struct frame *frame, Py_ssize_t index, PyObject *object, PyObject *method);

/* The Python object of a result, whose reference is used up; NULL with an exception set. */
PyObject *convert_result(const struct target *target, const dso_any *result);

/* Whether the facts say that the function writes through this argument ("*f32"). */
static inline int argument_is_written(const struct frame *frame, Py_ssize_t index) {
  const struct param *param = target_param(frame->target, index);
  return param != NULL && param->code[0] == '*';
}

#endif
