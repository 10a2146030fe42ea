/* Arrays that callbacks return, as Tensor objects of TVM FFI. */
#ifndef DSO_PACKER_PYTHON_CALL_OWNED_TENSOR_H
#define DSO_PACKER_PYTHON_CALL_OWNED_TENSOR_H

#include "python/call/convert.h"

/* Turn a frame's only value, the tensor of the array `array`, into an object that owns what it
 * needs, the frame's hold among it: 0, or -1 with MemoryError. Any thread may release it. */
int own_tensor(struct call_frame *frame, PyObject *array, dso_any *value);

#endif
