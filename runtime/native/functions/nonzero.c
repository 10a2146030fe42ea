/* relax.run.nonzero and relax.run.shape_to_tensor. */
#include <string.h>

#include "functions/global_functions.h"
#include "vm/builtin.h"

static const DLDataType INT64 = {.code = DTYPE_INT, .bits = 64, .lanes = 1};

/* ---- nonzero: the indices of the elements that are not zero, a row for each dimension */

/* Clear the sign of a float: both zeros are zero. */
static int is_zero(const unsigned char *bytes, size_t nbytes, int has_sign) {
  unsigned char rest = bytes[nbytes - 1] & (has_sign ? 0x7f : 0xff);
  for (size_t i = 0; i + 1 < nbytes; i++) rest |= bytes[i];
  return rest == 0;
}

static int is_element_zero(const struct array *array, int64_t index) {
  const unsigned char *bytes = (const void *)(array->data + index * (int64_t)array->itemsize);
  DLDataType dtype = array->tensor->dtype;
  size_t half = array->itemsize / 2;
  if (dtype.code == DTYPE_COMPLEX) return is_zero(bytes, half, 1) && is_zero(bytes + half, half, 1);
  int is_int = dtype.code == DTYPE_INT || dtype.code == DTYPE_UINT || dtype.code == DTYPE_BOOL;
  return is_zero(bytes, array->itemsize, !is_int);
}

static void store_indices(const struct array *array, const struct array *indices) {
  const DLTensor *tensor = array->tensor;
  int64_t count = indices->tensor->shape[1], next = 0;
  for (int64_t i = 0; i < array->size; i++) {
    if (is_element_zero(array, i)) continue;
    int64_t rest = i;
    for (int32_t dim = tensor->ndim > 0 ? tensor->ndim : 1; dim-- > 0;) {
      int64_t extent = tensor->ndim > 0 ? tensor->shape[dim] : 1, index = rest % extent;
      memcpy(indices->data + (dim * count + next) * (int64_t)sizeof index, &index, sizeof index);
      rest /= extent;
    }
    next++;
  }
}

GLOBAL_FUNCTION(global_nonzero) {
  static const char function[] = "relax.run.nonzero";
  struct array array, indices;
  dso_object *copy, *made = NULL;
  (void)handle;
  if (value_count(function, num_args, 1, 1) != 0 ||
      fetch_array(function, args, 0, &array, &copy) != 0)
    return -1;
  const DLTensor *tensor = array.tensor;
  int part = tensor->dtype.code == DTYPE_COMPLEX ? 16 : 8;
  if (tensor->dtype.lanes != 1 || tensor->dtype.bits % part != 0) {
    (void)refuse_dtype(function, 0, "a tensor of whole bytes", tensor->dtype);
  } else {
    int64_t shape[2] = {tensor->ndim > 0 ? tensor->ndim : 1, 0};
    for (int64_t i = 0; i < array.size; i++) shape[1] += !is_element_zero(&array, i);
    made = new_array(INT64, 2, shape, &indices);
    if (made != NULL) store_indices(&array, &indices);
  }
  if (copy != NULL) object_release(copy);
  if (made != NULL) *result = (dso_any){.type_index = DSO_TENSOR, .v_ptr = made};
  return made != NULL ? 0 : -1;
}

/* ---- shape_to_tensor */

GLOBAL_FUNCTION(global_shape_to_tensor) {
  struct vm_dims dims;
  struct array numbers;
  (void)handle;
  if (value_count("relax.run.shape_to_tensor", num_args, 1, 1) != 0 ||
      vm_read_dims("shape_to_tensor", 0, &args[0], &dims) != 0)
    return -1;
  dso_object *object = new_array(INT64, 1, &dims.ndim, &numbers);
  if (object == NULL) return -1;
  memcpy(numbers.data, dims.dims, (size_t)dims.ndim * sizeof *dims.dims);
  *result = (dso_any){.type_index = DSO_TENSOR, .v_ptr = object};
  return 0;
}
