/* Reading the arguments of the global functions. */
#include "functions/arguments.h"

#include <inttypes.h>

#include "abi/dlpack.h"
#include "abi/dtype_name.h"
#include "abi/raised.h"
#include "abi/strides.h"
#include "device/device_api.h"
#include "device/tensor_object.h"
#include "vm/builtin.h"

static int refuse(const char *function, const dso_any *args, int32_t index, const char *expected) {
  return raised_format("TypeError", "%s: argument %d, expected %s, found %s", function,
                       (int)index + 1, expected, vm_type_name(&args[index]));
}

int refuse_dtype(const char *function, int32_t index, const char *expected, DLDataType found) {
  char name[DTYPE_NAME_SIZE];
  return raised_format("TypeError", "%s: argument %d, expected %s, found a tensor of %s", function,
                       (int)index + 1, expected, dtype_name(found, name));
}

/* The elements of a tensor whose layout and device were checked. */
static struct array array_of(const DLTensor *tensor) {
  struct array array = {tensor, (char *)tensor->data + tensor->byte_offset, 1,
                        dtype_itemsize(tensor->dtype)};
  for (int32_t i = 0; i < tensor->ndim; i++) array.size *= tensor->shape[i];
  return array;
}

static int take_compact(const char *function, const dso_any *args, int32_t index,
                        const DLTensor **tensor) {
  size_t nbytes;
  *tensor = dso_tensor_of(&args[index]);
  if (*tensor == NULL) return refuse(function, args, index, "a tensor");
  if (dtype_nbytes((*tensor)->dtype, (*tensor)->ndim, (*tensor)->shape, &nbytes) != 0 ||
      !tensor_is_compact(*tensor))
    return refuse(function, args, index, "a contiguous tensor");
  return 0;
}

static int is_on_cpu(const DLTensor *tensor) { return tensor->device.device_type == DLPACK_CPU; }

int take_array(const char *function, const dso_any *args, int32_t index, struct array *array) {
  const DLTensor *tensor;
  if (take_compact(function, args, index, &tensor) != 0) return -1;
  if (!is_on_cpu(tensor)) {
    const char *kind = device_kind_name(tensor->device.device_type);
    return raised_format("DeviceError",
                         "%s: argument %d, expected a tensor on the cpu, found one on %s:%d",
                         function, (int)index + 1, kind != NULL ? kind : "an unknown device",
                         (int)tensor->device.device_id);
  }
  *array = array_of(tensor);
  return 0;
}

int take_output(const char *function, const dso_any *args, int32_t index, struct array *array) {
  if (take_array(function, args, index, array) != 0) return -1;
  if (!tensor_value_is_readonly(&args[index])) return 0;
  return raised_format("ValueError",
                       "%s: argument %d is an output, expected writable memory, found "
                       "read-only memory",
                       function, (int)index + 1);
}

int fetch_array(const char *function, const dso_any *args, int32_t index, struct array *array,
                dso_object **copy) {
  const DLTensor *tensor;
  *copy = NULL;
  if (take_compact(function, args, index, &tensor) != 0) return -1;
  if (is_on_cpu(tensor)) {
    *array = array_of(tensor);
    return 0;
  }
  *copy = new_array(tensor->dtype, tensor->ndim, tensor->shape, array);
  if (*copy == NULL) return -1;
  if (tensor_copy(array->tensor, tensor) == 0) return 0;
  object_release(*copy);
  *copy = NULL;
  return -1;
}

dso_object *new_array(DLDataType dtype, int32_t ndim, const int64_t *shape, struct array *array) {
  const DLDevice cpu = {.device_type = DLPACK_CPU, .device_id = 0};
  dso_object *object = tensor_object_new(cpu, dtype, ndim, shape);
  if (object != NULL) *array = array_of(&((dso_tensor_object *)(void *)object)->tensor);
  return object;
}

int take_float(const char *function, const dso_any *args, int32_t index, double *number) {
  if (args[index].type_index == DSO_FLOAT) *number = args[index].v_float64;
  else if (args[index].type_index == DSO_INT || args[index].type_index == DSO_BOOL)
    *number = (double)args[index].v_int64;
  else return refuse(function, args, index, "float");
  return 0;
}

int take_axis(const char *function, const dso_any *args, int32_t index, const DLTensor *tensor,
              struct axis *axis) {
  int64_t number;
  if (value_int(function, args, index, &number) != 0) return -1;
  int64_t wanted = number < 0 ? number + tensor->ndim : number;
  if (wanted < 0 || wanted >= tensor->ndim)
    return raised_format("ValueError",
                         "%s: axis %" PRId64 ", expected one of a tensor of %d dimensions",
                         function, number, (int)tensor->ndim);
  *axis = (struct axis){1, tensor->shape[wanted], 1};
  for (int32_t i = 0; i < tensor->ndim; i++) {
    if (i < wanted) axis->before *= tensor->shape[i];
    if (i > wanted) axis->after *= tensor->shape[i];
  }
  return 0;
}
