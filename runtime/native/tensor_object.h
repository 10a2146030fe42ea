/* Tensor objects of our own: memory of a device, or what DLPack hands over. No Python.h. */
#ifndef DSO_PACKER_NATIVE_TENSOR_OBJECT_H
#define DSO_PACKER_NATIVE_TENSOR_OBJECT_H

#include "dlpack.h"
#include "object.h"

enum { TENSOR_MAX_DIMS = 64, TENSOR_ALIGNMENT = 64 };

/* A compact tensor in memory of its own, whose bytes are not set; its last reference gives the
 * memory back to the device. NULL with an error raised. */
dso_object *tensor_object_new(DLDevice device, DLDataType dtype, int ndim, const int64_t *shape);

/* A tensor that is another's, which is told by deleter(managed) when the last reference goes; the
 * layout is copied. NULL with an error raised, and then the tensor is the caller's still. */
dso_object *tensor_object_adopt(const DLTensor *tensor, void *managed, void (*deleter)(void *));

/* Copy the elements of one tensor to another one of the same shape and data type, on any devices;
 * done when it returns. On the CPU either may have strides, and they may overlap. 0, or -1 with an
 * error raised. */
int tensor_copy(const DLTensor *to, const DLTensor *from);

/* The size that shape and data type ask for: 0, or -1 when it is negative or beyond memory. */
int tensor_size(const DLTensor *tensor, size_t *nbytes);

#endif
