/* Tensor objects of the core: of allocated, viewed or adopted memory. */
#include "device/tensor_object.h"

#include <string.h>

#include "device/device_api.h"
#include "abi/dtype.h"
#include "abi/raised.h"
#include "abi/strides.h"

/* A tensor object, followed by its shape and strides. */
struct allocated_tensor {
  struct tensor_object start;
  const struct device_api *api; /* allocated the memory; NULL for a view or an adopted tensor */
  void *managed;
  void (*deleter)(void *managed); /* may be NULL */
  int64_t dims[];
};

static void release_owner(void *owner) { object_release(owner); }

static void drop_memory(const struct allocated_tensor *own) {
  const DLTensor *tensor = &own->start.tensor;
  if (own->deleter == release_owner) object_release(own->managed); /* the common case: a view */
  else if (own->api != NULL) (void)own->api->free(tensor->device.device_id, tensor->data);
  else if (own->deleter != NULL) own->deleter(own->managed);
}

void tensor_object_delete(void *self, int flags) {
  if (flags & DSO_DELETE_STRONG) drop_memory(self);
  object_free(self, flags);
}

static struct allocated_tensor *allocated_of(const dso_object *object) {
  return object->deleter == tensor_object_delete ? (struct allocated_tensor *)(uintptr_t)object
                                                 : NULL;
}

void tensor_object_mark(dso_object *object, unsigned flags) {
  allocated_of(object)->start.flags |= flags;
}

/* ---- The layout */

static inline struct allocated_tensor *make(int ndim, const int64_t *shape,
                                            const int64_t *strides) {
  if (ndim < 0 || ndim > TENSOR_MAX_DIMS)
    return raised_null("ValueError", "tensor: expected 0 to 64 dimensions");
  size_t dims_size = (size_t)ndim * sizeof(int64_t);
  struct allocated_tensor *own =
      object_new_unset(sizeof *own + 2 * dims_size, DSO_TENSOR, tensor_object_delete);
  if (own == NULL) return raised_null("OutOfMemoryError", "no memory for a tensor");
  own->start.tensor = (DLTensor){.ndim = ndim, .shape = own->dims, .strides = own->dims + ndim};
  own->api = NULL;
  own->deleter = NULL;
  own->start.flags = 0;
  for (int i = 0; i < ndim; i++) own->dims[i] = shape[i];
  if (strides == NULL) strides_set(&own->start.tensor);
  else if (ndim > 0) memcpy(own->start.tensor.strides, strides, dims_size);
  return own;
}

/* ---- Memory of a device */

static int allocate(struct allocated_tensor *own) {
  DLTensor *tensor = &own->start.tensor;
  size_t nbytes;
  if (dtype_nbytes(tensor->dtype, tensor->ndim, tensor->shape, &nbytes) != 0)
    return raised_format("ValueError",
                         "tensor: the shape has a negative extent, or a size beyond the "
                         "address space");
  const struct device_api *api = device_api(tensor->device.device_type);
  if (api == NULL ||
      api->alloc(tensor->device.device_id, nbytes, TENSOR_ALIGNMENT, &tensor->data) != 0)
    return -1;
  own->api = api;
  return 0;
}

dso_object *tensor_object_new(DLDevice device, DLDataType dtype, int ndim, const int64_t *shape) {
  struct allocated_tensor *own = make(ndim, shape, NULL);
  if (own == NULL) return NULL;
  own->start.tensor.device = device;
  own->start.tensor.dtype = dtype;
  if (allocate(own) == 0) return &own->start.object;
  object_release(&own->start.object);
  return NULL;
}

/* ---- Views. A view of a view retains the first owner: otherwise a program could make chains of
 * any length. */

dso_tensor_object *tensor_object_view(DLDataType dtype, int ndim, const int64_t *shape,
                                      dso_object *owner) {
  struct allocated_tensor *own = make(ndim, shape, NULL);
  if (own == NULL && owner != NULL) object_release(owner);
  if (own == NULL) return NULL;
  own->start.tensor.dtype = dtype;
  if (owner == NULL) return (dso_tensor_object *)(void *)own;
  const struct allocated_tensor *viewed = allocated_of(owner);
  own->managed = owner;
  own->deleter = release_owner;
  if (viewed != NULL) own->start.flags = viewed->start.flags & TENSOR_READ_ONLY;
  if (viewed != NULL && viewed->deleter == release_owner) {
    own->managed = viewed->managed;
    object_retain(own->managed);
    object_release(owner);
  }
  return (dso_tensor_object *)(void *)own;
}

/* ---- Tensors of another owner */

static const char *defect_of(const DLTensor *tensor) {
  size_t nbytes;
  if (tensor->dtype.bits == 0 || tensor->dtype.lanes == 0) return "a data type of 0 bits";
  if (tensor->ndim > 0 && tensor->shape == NULL) return "no shape";
  if (dtype_nbytes(tensor->dtype, tensor->ndim, tensor->shape, &nbytes) != 0)
    return "a negative extent, or a size beyond the address space";
  return nbytes > 0 && tensor->data == NULL ? "no data" : NULL;
}

dso_object *tensor_object_adopt(const DLTensor *tensor, void *managed, void (*deleter)(void *)) {
  int is_countable = tensor->ndim >= 0 && tensor->ndim <= TENSOR_MAX_DIMS;
  const char *wrong = is_countable ? defect_of(tensor) : "a number of dimensions beyond 0 to 64";
  if (wrong != NULL) return raised_null("ValueError", "DLPack: found a tensor with %s", wrong);
  struct allocated_tensor *own = make(tensor->ndim, tensor->shape, tensor->strides);
  if (own == NULL) return NULL;
  own->start.tensor.data = tensor->data;
  own->start.tensor.device = tensor->device;
  own->start.tensor.dtype = tensor->dtype;
  own->start.tensor.byte_offset = tensor->byte_offset;
  own->managed = managed;
  own->deleter = deleter;
  return &own->start.object;
}
