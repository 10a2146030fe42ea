/* Tensor objects of the core. Their data is memory of a device, a view of memory that another
 * object owns, or a tensor received by DLPack. */
#pragma once

#include "abi/dlpack.h"
#include "abi/object.h"

enum { TENSOR_MAX_DIMS = 64, TENSOR_ALIGNMENT = 64 };

/* Flags beside the DLTensor: the memory is read-only for every receiver; the tensor is the heap of
 * a virtual machine's symbolic extents; the tensor has no data, since its payload has another size
 * (blob/arrays.h). */
enum { TENSOR_READ_ONLY = 1, TENSOR_SHAPE_HEAP = 2, TENSOR_INCOMPLETE = 4 };

/* The head of a tensor object, and its deleter, which distinguishes it from tensors of other
 * libraries. */
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

/* Add flags to an object of the core that is not shared yet. */
void tensor_object_mark(dso_object *object, unsigned flags);

/* Return 1 if the value is a tensor with read-only memory. A Tensor object has a flag; a DLTensor
 * pointer is marked in the value (DSO_READ_ONLY). */
static inline int tensor_value_is_readonly(const dso_any *value) {
  if (value->type_index == DSO_TENSOR)
    return (tensor_object_flags((const dso_object *)value->v_ptr) & TENSOR_READ_ONLY) != 0;
  return value->type_index == DSO_DLTENSOR_PTR && value->small_len == DSO_READ_ONLY;
}

/* A compact tensor in newly allocated memory, which is not initialised. The last reference frees
 * the memory. NULL with an error raised. */
dso_object *tensor_object_new(DLDevice device, DLDataType dtype, int ndim, const int64_t *shape);

/* A compact tensor in memory that `owner` owns, or that is never freed (NULL). Takes over the
 * caller's reference to `owner`, also on failure. If `owner` is itself a view, its owner is retained instead, and the READ_ONLY flag is
 * inherited. The caller sets data, device and offset. NULL with an error raised. */
dso_tensor_object *tensor_object_view(DLDataType dtype, int ndim, const int64_t *shape,
                                      dso_object *owner);

/* A tensor of another owner, which is freed by deleter(managed) at the last reference. The layout
 * is copied. On failure it returns NULL with an error raised, and the caller still owns the
 * tensor. */
dso_object *tensor_object_adopt(const DLTensor *tensor, void *managed, void (*deleter)(void *));

/* Copy the elements of a tensor to another tensor of the same shape and data type, on any devices.
 * The copy is complete on return. On the CPU both tensors may overlap, and may have strides if
 * their elements share no bytes. Returns 0, or -1 with an error raised. */
int tensor_copy(const DLTensor *to, const DLTensor *from);
