/* Arguments that a machine keeps for later calls. */
#include "abi/raised.h"
#include "types/vm/virtual_machine.h"

/* A value on the first device. Arrays are at most as deep as the machine admits. */
struct placing {
  struct vm_allocator *allocator;
  int depth;
  int64_t num_items;
};

static int place_tensor(const struct placing *placing, const dso_any *value, dso_any *placed) {
  DLDevice device = vm_allocator_device(placing->allocator);
  const DLTensor *tensor = dso_tensor_of(value);
  if (tensor->device.device_type == device.device_type &&
      tensor->device.device_id == device.device_id) {
    any_retain(value);
    *placed = *value;
    return 0;
  }
  dso_tensor_object *copy = vm_tensor_copy(placing->allocator, tensor);
  if (copy == NULL) return -1;
  *placed = any_of_object(copy);
  return 0;
}

static int place(struct placing *placing, const dso_any *value, dso_any *placed);

static int place_array(struct placing *placing, const dso_array_object *array, dso_any *placed) {
  enum { MOST_NESTED = 64, MOST_ITEMS = 1 << 20 };
  if (placing->depth == MOST_NESTED || array->size > MOST_ITEMS - placing->num_items)
    return raised_format("ValueError",
                         "set_input: tuples of more than %d levels or %d items, expected fewer",
                         MOST_NESTED, MOST_ITEMS);
  dso_array_object *copy = array_object_new(array->size);
  if (copy == NULL) return -1;
  placing->num_items += array->size;
  placing->depth++;
  int status = 0;
  for (int64_t i = 0; i < array->size && status == 0; i++)
    status = place(placing, &array->items[i], &copy->items[i]);
  placing->depth--;
  *placed = any_of_object(copy);
  if (status != 0) any_release(placed);
  if (status != 0) *placed = dso_none();
  return status;
}

static int place(struct placing *placing, const dso_any *value, dso_any *placed) {
  if (value->type_index == DSO_ARRAY) return place_array(placing, value->v_ptr, placed);
  if (value->type_index == DSO_TENSOR) return place_tensor(placing, value, placed);
  *placed = *value;
  any_retain(value);
  return 0;
}

/* A value that owns its data, as a machine's register does. */
static int own(const struct vm *vm, const dso_any *argument, dso_any *value) {
  *value = dso_none();
  return vm_admit(vm, argument, value) == 0 ? vm_own(vm, value) : -1;
}

static int own_on_device(const struct vm *vm, const dso_any *argument, dso_any *value) {
  struct placing placing = {.allocator = vm->allocators[0]};
  dso_any owned;
  if (own(vm, argument, &owned) != 0) return -1;
  *value = owned;
  if (vm->num_allocators == 1) return 0; /* only the CPU */
  int status = place(&placing, &owned, value);
  any_release(&owned);
  return status;
}

dso_array_object *vm_own_all(const struct vm *vm, const dso_any *args, int32_t count,
                             int is_on_device) {
  dso_array_object *array = array_object_new(count);
  int status = array != NULL ? 0 : -1;
  for (int32_t i = 0; i < count && status == 0; i++) {
    status = is_on_device ? own_on_device(vm, &args[i], &array->items[i])
                          : own(vm, &args[i], &array->items[i]);
    if (status != 0) array->items[i] = dso_none();
  }
  if (status == 0) return array;
  if (array != NULL) object_release(&array->object);
  return NULL;
}
