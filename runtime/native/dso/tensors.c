/* Tensors that the program allocates and copies, on any device. */
#include "device/tensor_object.h"
#include "dso.h"
#include "dso/null.h"

int dso_tensor_new(dso_any *result, DLDevice device, DLDataType dtype, int32_t ndim,
                   const int64_t *shape) {
  if (is_null(result, "dso_tensor_new", "a result")) return -1;
  *result = dso_none();
  if (ndim > 0 && is_null(shape, "dso_tensor_new", "a shape")) return -1;
  dso_object *tensor = tensor_object_new(device, dtype, ndim, shape);
  if (tensor == NULL) return -1;
  *result = dso_object_value(tensor);
  return 0;
}

int dso_tensor_copy(const DLTensor *to, const DLTensor *from) {
  if (is_null(to, "dso_tensor_copy", "a tensor to copy to") ||
      is_null(from, "dso_tensor_copy", "a tensor to copy"))
    return -1;
  return tensor_copy(to, from);
}
