/* Tensors that the program allocates and copies, on any device. */
#include "device/tensor_object.h"
#include "dso.h"

int dso_tensor_new(dso_any *result, DLDevice device, DLDataType dtype, int32_t ndim,
                   const int64_t *shape) {
  *result = dso_none();
  dso_object *tensor = tensor_object_new(device, dtype, ndim, shape);
  if (tensor == NULL) return -1;
  *result = dso_object_value(tensor);
  return 0;
}

int dso_tensor_copy(const DLTensor *to, const DLTensor *from) { return tensor_copy(to, from); }
