/* The built-in functions for shapes. Symbolic extents are int64 numbers in a tensor, the "shape
 * heap", which compiled code also reads and writes. */
#include <inttypes.h>

#include "abi/dlpack.h"
#include "abi/dtype.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "vm/builtin.h"

int vm_read_dims(const char *name, int number, const dso_any *value, struct vm_dims *dims) {
  const dso_array_object *array = value->v_ptr;
  if (value->type_index == DSO_SHAPE) {
    const dso_shape_object *shape = value->v_ptr;
    dims->dims = shape->dims;
    dims->ndim = (int64_t)shape->ndim;
    if (dims->ndim <= INT32_MAX) return 0;
  }
  if (value->type_index != DSO_ARRAY || array->size > VM_MOST_DIMS)
    return vm_refuse_argument(name, number, "a shape", value);
  for (int64_t i = 0; i < array->size; i++) {
    if (array->items[i].type_index != DSO_INT)
      return vm_refuse_argument(name, number, "a tuple of ints", &array->items[i]);
    dims->room[i] = array->items[i].v_int64;
  }
  dims->dims = dims->room;
  dims->ndim = array->size;
  return 0;
}

/* ---- The heap */

enum { MOST_SLOTS = 1 << 20 };

struct heap {
  int64_t *numbers;
  int64_t size;
};

/* Read a shape heap. Only a tensor made by alloc_shape_heap is accepted: the memory of another one
 * might be read-only. None is a heap of size 0, which suffices for codes that need no slot. */
static int read_heap(const char *name, int number, const dso_any *value, struct heap *heap) {
  *heap = (struct heap){0};
  if (value->type_index == DSO_NONE) return 0;
  if (value->type_index != DSO_TENSOR || !(tensor_object_flags(value->v_ptr) & TENSOR_SHAPE_HEAP))
    return vm_refuse_argument(name, number, "a shape heap that alloc_shape_heap made", value);
  const DLTensor *tensor = dso_tensor_of(value);
  heap->numbers = tensor->data;
  heap->size = tensor->shape[0];
  return 0;
}

static int64_t *slot_of(const char *name, const struct heap *heap, int64_t index) {
  if (index >= 0 && index < heap->size) return &heap->numbers[index];
  return raised_null("IndexError",
                     "vm.builtin.%s: slot %" PRId64 " of the shape heap, expected less "
                     "than %" PRId64,
                     name, index, heap->size);
}

/* Context, number of slots: one for each symbolic extent of a function. */
VM_BUILTIN(vm_alloc_shape_heap) {
  (void)num_args;
  if (args[1].type_index != DSO_INT)
    return vm_refuse_argument("alloc_shape_heap", 1, "int", &args[1]);
  if (args[1].v_int64 < 0 || args[1].v_int64 > MOST_SLOTS)
    return raised_format("ValueError",
                         "vm.builtin.alloc_shape_heap: %" PRId64 " slots, expected 0 "
                         "to %d",
                         args[1].v_int64, MOST_SLOTS);
  dso_tensor_object *heap =
      vm_tensor_new(vm_host_allocator(vm_of_run(run)), (DLDataType){0, 64, 1}, 1, &args[1].v_int64);
  if (heap == NULL) return -1;
  vm_count_bytes(run, (size_t)args[1].v_int64 * 8);
  memset(heap->tensor.data, 0, (size_t)args[1].v_int64 * 8);
  tensor_object_mark(&heap->object, TENSOR_SHAPE_HEAP);
  *result = any_of_object(heap);
  return 0;
}

/* ---- Pairs of a code and an operand */

/* builtin.h, MatchShapeCode and MakeShapeCode */
enum { EQUAL_TO_IMMEDIATE = 0, STORE = 1, NO_CHECK = 2, EQUAL_TO_SLOT = 3 };
enum { IMMEDIATE = 0, SLOT = 1 };

/* Get the number of pairs. Argument `number` must be the number of the pairs that follow it,
 * without the last `num_trailing` arguments. */
static int count_pairs(const char *name, const dso_any *args, int32_t num_args, int number,
                       int num_trailing, int64_t *count) {
  *count = (num_args - number - 1 - num_trailing) / 2;
  if (args[number].type_index != DSO_INT)
    return vm_refuse_argument(name, number, "int", &args[number]);
  if (args[number].v_int64 == *count && number + 1 + 2 * *count + num_trailing == num_args)
    return 0;
  return raised_format("ValueError",
                       "vm.builtin.%s: %" PRId64 " pairs of code and operand, "
                       "expected as many as arguments",
                       name, args[number].v_int64);
}

static int are_ints(const char *name, const dso_any *args, int number, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (args[number + i].type_index != DSO_INT)
      return vm_refuse_argument(name, number + (int)i, "int", &args[number + i]);
  return 0;
}

static int refuse_extent(const dso_any *context, int64_t axis, int64_t expected, int64_t found) {
  char text[VM_CONTEXT_SIZE];
  return raised_format("ValueError",
                       "%sextent of axis %" PRId64 ", expected %" PRId64 ", found %" PRId64,
                       vm_context(context, text), axis, expected, found);
}

/* Match a number against one pair. `index` is the index of the extent, for messages. */
static int match(const char *name, int64_t number, int64_t index, const struct heap *heap,
                 const dso_any *pair, const dso_any *context) {
  int64_t code = pair[0].v_int64, operand = pair[1].v_int64, *slot = NULL;
  switch (code) {
    case EQUAL_TO_IMMEDIATE:
      return number == operand ? 0 : refuse_extent(context, index, operand, number);
    case NO_CHECK: return 0;
    case STORE:
    case EQUAL_TO_SLOT:
      if ((slot = slot_of(name, heap, operand)) == NULL) return -1;
      if (code == STORE) *slot = number;
      return number == *slot ? 0 : refuse_extent(context, index, *slot, number);
    default:
      return raised_format("ValueError", "vm.builtin.%s: code %" PRId64 ", expected 0 to 3", name,
                           code);
  }
}

static int extents_of(const dso_any *value, struct vm_dims *dims) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (tensor == NULL) return vm_read_dims("match_shape", 0, value, dims);
  dims->dims = tensor->shape;
  dims->ndim = tensor->ndim;
  return 0;
}

/* Tensor or shape, heap, count, its pairs, context for messages. */
VM_BUILTIN(vm_match_shape) {
  const dso_any *context = &args[num_args - 1];
  char text[VM_CONTEXT_SIZE];
  struct vm_dims dims = {.ndim = 0};
  struct heap heap;
  int64_t count;
  (void)run, (void)result;
  if (extents_of(&args[0], &dims) != 0 || read_heap("match_shape", 1, &args[1], &heap) != 0 ||
      count_pairs("match_shape", args, num_args, 2, 1, &count) != 0 ||
      are_ints("match_shape", args, 3, 2 * count) != 0)
    return -1;
  if (dims.ndim != count)
    return raised_format("ValueError", "%s%" PRId64 " dimensions, expected %" PRId64,
                         vm_context(context, text), dims.ndim, count);
  for (int64_t i = 0; i < count; i++)
    if (match("match_shape", dims.dims[i], i, &heap, &args[3 + 2 * i], context) != 0) return -1;
  return 0;
}

/* Number, heap, code, operand, context for messages. */
VM_BUILTIN(vm_match_prim_value) {
  struct heap heap;
  (void)run, (void)num_args, (void)result;
  if (args[0].type_index != DSO_INT && args[0].type_index != DSO_BOOL)
    return vm_refuse_argument("match_prim_value", 0, "int", &args[0]);
  if (read_heap("match_prim_value", 1, &args[1], &heap) != 0 ||
      are_ints("match_prim_value", args, 2, 2) != 0)
    return -1;
  return match("match_prim_value", args[0].v_int64, 0, &heap, &args[2], &args[4]);
}

static int make(const char *name, const struct heap *heap, const dso_any *pair, int64_t *number) {
  const int64_t *slot = &pair[1].v_int64;
  if (pair[0].v_int64 == SLOT) slot = slot_of(name, heap, pair[1].v_int64);
  else if (pair[0].v_int64 != IMMEDIATE)
    return raised_format("ValueError", "vm.builtin.%s: code %" PRId64 ", expected 0 or 1", name,
                         pair[0].v_int64);
  if (slot == NULL) return -1;
  *number = *slot;
  return 0;
}

/* Heap, count, its pairs. */
VM_BUILTIN(vm_make_shape) {
  int64_t dims[VM_MOST_DIMS], count;
  struct heap heap;
  (void)run;
  if (read_heap("make_shape", 0, &args[0], &heap) != 0 ||
      count_pairs("make_shape", args, num_args, 1, 0, &count) != 0 ||
      are_ints("make_shape", args, 2, 2 * count) != 0)
    return -1;
  if (count > VM_MOST_DIMS)
    return raised_format("ValueError",
                         "vm.builtin.make_shape: %" PRId64 " dimensions, expected at "
                         "most %d",
                         count, VM_MOST_DIMS);
  for (int64_t i = 0; i < count; i++)
    if (make("make_shape", &heap, &args[2 + 2 * i], &dims[i]) != 0) return -1;
  dso_object *shape = shape_object_new((size_t)count, dims);
  if (shape == NULL) return -1;
  *result = any_of_object(shape);
  return 0;
}

/* Heap, code, operand. */
VM_BUILTIN(vm_make_prim_value) {
  struct heap heap;
  (void)run, (void)num_args;
  if (read_heap("make_prim_value", 0, &args[0], &heap) != 0 ||
      are_ints("make_prim_value", args, 1, 2) != 0)
    return -1;
  *result = (dso_any){.type_index = DSO_INT};
  return make("make_prim_value", &heap, &args[1], &result->v_int64);
}

/* ---- Tensors and shapes */

static int give_shape(size_t ndim, const int64_t *dims, dso_any *result) {
  dso_object *shape = shape_object_new(ndim, dims);
  if (shape == NULL) return -1;
  *result = any_of_object(shape);
  return 0;
}

VM_BUILTIN(vm_shape_of) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  (void)run, (void)num_args;
  if (tensor == NULL) return vm_refuse_argument("shape_of", 0, "a tensor", &args[0]);
  return give_shape((size_t)tensor->ndim, tensor->shape, result);
}

/* Copy a vector of at most VM_MOST_DIMS ints from its device. Returns its length, or -1. */
static int64_t fetch_vector(const DLTensor *tensor, void *bytes) {
  const struct device_memory from = {tensor->device, tensor->data, (size_t)tensor->byte_offset};
  const struct device_memory to = {{DLPACK_CPU, 0}, bytes, 0};
  const struct device_api *api = device_api(tensor->device.device_type);
  size_t nbytes = (size_t)tensor->shape[0] * dtype_itemsize(tensor->dtype);
  return api != NULL && api->copy(&to, &from, nbytes) == 0 ? tensor->shape[0] : -1;
}

static int is_vector(const DLTensor *tensor) {
  return tensor->ndim == 1 && tensor->shape[0] >= 0 && tensor->shape[0] <= VM_MOST_DIMS &&
         tensor->dtype.code == DTYPE_INT && tensor->dtype.lanes == 1 &&
         (tensor->dtype.bits == 32 || tensor->dtype.bits == 64) &&
         vm_tensor_is_compatible(tensor, VM_LEAST_ALIGNMENT);
}

VM_BUILTIN(vm_tensor_to_shape) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  int64_t dims[VM_MOST_DIMS];
  int32_t narrow[VM_MOST_DIMS];
  (void)run, (void)num_args;
  if (tensor == NULL || !is_vector(tensor))
    return vm_refuse_argument("tensor_to_shape", 0, "a vector of int32 or int64", &args[0]);
  int is_narrow = tensor->dtype.bits == 32;
  int64_t ndim = fetch_vector(tensor, is_narrow ? (void *)narrow : (void *)dims);
  if (ndim < 0) return -1;
  for (int64_t i = 0; i < ndim && is_narrow; i++) dims[i] = narrow[i];
  return give_shape((size_t)ndim, dims, result);
}
