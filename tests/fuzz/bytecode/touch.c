/* Reading, writing and copying values, byte for byte through the core's one size function. */
#include <stdlib.h>
#include <string.h>

#include "abi/dtype.h"
#include "program.h"
#include "device/tensor_object.h"

enum { MOST_VISITS = 48 };

static volatile unsigned char sink;

static void check(int is_right) {
  if (!is_right) abort();
}

static void touch_bytes(volatile unsigned char *bytes, size_t nbytes, int is_readonly) {
  for (size_t i = 0; i < nbytes; i++) {
    sink = bytes[i];
    if (!is_readonly) bytes[i] = sink; /* the same: a heap keeps its numbers */
  }
}

static void compare_copy(const DLTensor *tensor, const unsigned char *bytes, size_t nbytes) {
  dso_object *object =
      tensor_object_new((DLDevice){DLPACK_CPU, 0}, tensor->dtype, tensor->ndim, tensor->shape);
  if (object == NULL) return; /* an allocation that was to fail */
  DLTensor *copy = &((dso_tensor_object *)(void *)object)->tensor;
  if (tensor_copy(copy, tensor) == 0) check(nbytes == 0 || memcmp(copy->data, bytes, nbytes) == 0);
  object_release(object);
}

static void touch_tensor(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  unsigned char *bytes = (unsigned char *)tensor->data + tensor->byte_offset;
  size_t nbytes;
  if (dtype_nbytes(tensor->dtype, tensor->ndim, tensor->shape, &nbytes) != 0) {
    check(tensor->dtype.bits == 0 || tensor->dtype.lanes == 0);
    return;
  }
  check(nbytes == expected_nbytes(tensor->dtype, tensor->ndim, tensor->shape));
  touch_bytes(bytes, nbytes, tensor_value_is_readonly(value));
  compare_copy(tensor, bytes, nbytes);
}

static void touch_text(const dso_any *value) {
  const dso_byte_array *bytes = (const dso_byte_array *)((const dso_object *)value->v_ptr + 1);
  for (uint64_t i = 0; i < bytes->size; i++) sink = (unsigned char)bytes->data[i];
}

static void visit(const dso_any *value, int depth, int *visits) {
  if (depth > 100 || ++*visits > MOST_VISITS) return;
  const dso_array_object *array = value->v_ptr;
  const dso_shape_object *shape = value->v_ptr;
  switch (value->type_index) {
    case DSO_TENSOR:
    case DSO_DLTENSOR_PTR: touch_tensor(value); return;
    case DSO_STR:
    case DSO_BYTES: touch_text(value); return;
    case DSO_SHAPE:
      for (size_t i = 0; i < shape->ndim; i++) sink = (unsigned char)shape->dims[i];
      return;
    case DSO_ARRAY:
      for (int64_t i = 0; i < array->size; i++) visit(&array->items[i], depth + 1, visits);
      return;
    default: return;
  }
}

void touch(const dso_any *value) {
  int visits = 0;
  visit(value, 0, &visits);
}
