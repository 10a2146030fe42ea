#include "tensor_object.h"

#include <stdio.h>
#include <string.h>

#include "device_api.h"
#include "dtype.h"
#include "raised.h"
#include "strides.h"

/* A tensor object with room for its shape and strides. */
struct own_tensor {
  dso_object object;
  DLTensor tensor;
  const struct device_api *api; /* whose memory it is, or NULL: it was adopted */
  void *managed;
  void (*deleter)(void *managed); /* or NULL */
  int64_t dims[];
};

static void delete_tensor(void *self, int flags) {
  struct own_tensor *own = self;
  if (flags & DSO_DELETE_STRONG) {
    if (own->api != NULL) (void)own->api->free(own->tensor.device.device_id, own->tensor.data);
    else if (own->deleter != NULL) own->deleter(own->managed);
  }
  object_free(self, flags);
}

/* ---- The layout */

int tensor_size(const DLTensor *tensor, size_t *nbytes) {
  int64_t size = (int64_t)dtype_itemsize(tensor->dtype), is_empty = 0;
  for (int i = 0; i < tensor->ndim; i++) {
    if (tensor->shape[i] < 0) return -1;
    if (tensor->shape[i] == 0) is_empty = 1;
    else if (__builtin_mul_overflow(size, tensor->shape[i], &size)) return -1;
  }
  *nbytes = is_empty ? 0 : (size_t)size;
  return 0;
}

static int refuse(const char *kind, const char *text) {
  raised_set(kind, text);
  return -1;
}

static struct own_tensor *make(int ndim, const int64_t *shape, const int64_t *strides) {
  if (ndim < 0 || ndim > TENSOR_MAX_DIMS) {
    refuse("ValueError", "tensor: expected 0 to 64 dimensions");
    return NULL;
  }
  size_t dims = 2 * (size_t)ndim;
  struct own_tensor *own =
      object_new(sizeof *own + dims * sizeof own->dims[0], DSO_TENSOR, delete_tensor);
  if (own == NULL) {
    refuse("OutOfMemoryError", "no memory for a tensor");
    return NULL;
  }
  own->tensor.ndim = ndim;
  own->tensor.shape = own->dims;
  own->tensor.strides = own->dims + ndim;
  for (int i = 0; i < ndim; i++) own->tensor.shape[i] = shape[i];
  if (strides == NULL) strides_set(&own->tensor);
  else
    for (int i = 0; i < ndim; i++) own->tensor.strides[i] = strides[i];
  return own;
}

/* ---- Memory of a device */

static int allocate(struct own_tensor *own) {
  DLTensor *tensor = &own->tensor;
  size_t nbytes;
  if (tensor_size(tensor, &nbytes) != 0)
    return refuse("ValueError", "tensor: a shape with a negative extent, or beyond memory");
  const struct device_api *api = device_api(tensor->device.device_type);
  if (api == NULL ||
      api->alloc(tensor->device.device_id, nbytes, TENSOR_ALIGNMENT, &tensor->data) != 0)
    return -1;
  own->api = api;
  return 0;
}

dso_object *tensor_object_new(DLDevice device, DLDataType dtype, int ndim, const int64_t *shape) {
  struct own_tensor *own = make(ndim, shape, NULL);
  if (own == NULL) return NULL;
  own->tensor.device = device;
  own->tensor.dtype = dtype;
  if (allocate(own) == 0) return &own->object;
  object_release(&own->object);
  return NULL;
}

/* ---- Another's */

static const char *trouble(const DLTensor *tensor) {
  size_t nbytes;
  if (tensor->dtype.bits == 0 || tensor->dtype.lanes == 0) return "a data type of no bits";
  if (tensor->ndim > 0 && tensor->shape == NULL) return "no shape";
  if (tensor_size(tensor, &nbytes) != 0) return "a negative extent, or a size beyond memory";
  return nbytes > 0 && tensor->data == NULL ? "no data" : NULL;
}

dso_object *tensor_object_adopt(const DLTensor *tensor, void *managed, void (*deleter)(void *)) {
  char text[96];
  int is_countable = tensor->ndim >= 0 && tensor->ndim <= TENSOR_MAX_DIMS;
  const char *wrong = is_countable ? trouble(tensor) : "dimensions that are not 0 to 64";
  if (wrong != NULL) {
    snprintf(text, sizeof text, "DLPack: found a tensor with %s", wrong);
    refuse("ValueError", text);
    return NULL;
  }
  struct own_tensor *own = make(tensor->ndim, tensor->shape, tensor->strides);
  if (own == NULL) return NULL;
  own->tensor.data = tensor->data;
  own->tensor.device = tensor->device;
  own->tensor.dtype = tensor->dtype;
  own->tensor.byte_offset = tensor->byte_offset;
  own->managed = managed;
  own->deleter = deleter;
  return &own->object;
}
