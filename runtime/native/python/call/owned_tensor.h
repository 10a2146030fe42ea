/* Arrays as Tensor objects that own their memory. */
#ifndef DSO_PACKER_PYTHON_CALL_OWNED_TENSOR_H
#define DSO_PACKER_PYTHON_CALL_OWNED_TENSOR_H

#include "python/call/convert.h"

/* Replace a frame's only value, the tensor of `array`, by a Tensor object that owns the array and
 * the frame's hold: 0, or -1 with MemoryError. Any thread may release the object. */
int own_tensor(struct call_frame *frame, PyObject *array, dso_any *value);

#endif
