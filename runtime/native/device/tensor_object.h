/* Tensor objects of our own: memory of a device, a view of what another object keeps, or what DLPack
 * hands over. No Python.h. */
#ifndef DSO_PACKER_DEVICE_TENSOR_OBJECT_H
#define DSO_PACKER_DEVICE_TENSOR_OBJECT_H

#include "abi/dlpack.h"
#include "abi/object.h"

enum { TENSOR_MAX_DIMS = 64, TENSOR_ALIGNMENT = 64 };

/* What our objects know beside the DLTensor: the memory may only be read, by whoever gets it; it is
 * the heap of a virtual machine's symbolic extents. */
enum { TENSOR_READ_ONLY = 1, TENSOR_SHAPE_HEAP = 2 };

/* How our objects begin; and their deleter, by which they are told from those of other libraries. */
struct tensor_object {
  dso_object object;
  DLTensor tensor;
  unsigned flags;
};
void tensor_object_delete(void *self, int flags);

/* The flags of a Tensor object; 0 if another library made it. */
static inline unsigned tensor_object_flags(const dso_object *object) {
  if (object->deleter != tensor_object_delete) return 0;
  return ((const struct tensor_object *)(const void *)object)->flags;
}

/* Add flags to an object of ours, before anyone else has it. */
void tensor_object_mark(dso_object *object, unsigned flags);

/* Whether a value is a tensor whose memory may only be read: of an object its flag says so, of a
 * pointer the value itself (DSO_READ_ONLY). */
static inline int tensor_value_is_readonly(const dso_any *value) {
  if (value->type_index == DSO_TENSOR)
    return (tensor_object_flags((const dso_object *)value->v_ptr) & TENSOR_READ_ONLY) != 0;
  return value->type_index == DSO_DLTENSOR_PTR && value->small_len == DSO_READ_ONLY;
}

/* A compact tensor in memory of its own, whose bytes are not set; its last reference gives the
 * memory back to the device. NULL with an error raised. */
dso_object *tensor_object_new(DLDevice device, DLDataType dtype, int ndim, const int64_t *shape);

/* A compact tensor in memory that `owner` keeps, whose reference it takes over. If that is such a
 * view, too, its owner is kept instead, and its READ_ONLY flag is inherited. Data, device and offset
 * are the caller's to set. NULL with an error raised, and `owner` released. */
dso_tensor_object *tensor_object_view(DLDataType dtype, int ndim, const int64_t *shape,
                                      dso_object *owner);

/* A tensor of another owner, which is told by deleter(managed) when the last reference goes; the
 * layout is copied. NULL with an error raised, and then the tensor is the caller's still. */
dso_object *tensor_object_adopt(const DLTensor *tensor, void *managed, void (*deleter)(void *));

/* Copy the elements of one tensor to another one of the same shape and data type, on any devices;
 * done when it returns. On the CPU either may have strides, if its elements share no bytes, and they
 * may overlap. 0, or -1 with an error raised. */
int tensor_copy(const DLTensor *to, const DLTensor *from);

#endif
