/* Admitting the arguments of a call into the registers of the virtual machine. */
#include <string.h>

#include "abi/raised.h"
#include "vm/vm.h"

enum { MOST_NESTED = 64, MOST_ITEMS = 1 << 20 };

/* The state while one argument is admitted. An item that occurs several times is counted each
 * time. */
struct admission {
  const struct vm *vm;
  int depth;
  int64_t num_items;
};

/* Check a tensor, and copy it if compiled operators cannot take it; otherwise *copy is NULL. */
static int copy_incompatible(const struct vm *vm, const dso_any *value, dso_tensor_object **copy) {
  const DLTensor *tensor = dso_tensor_of(value);
  size_t nbytes;
  *copy = NULL;
  if (tensor == NULL)
    return raised_format("ValueError", "the tensor pointer is NULL, expected a tensor");
  if (vm_nbytes("a tensor", tensor->dtype, tensor->ndim, tensor->shape, &nbytes) != 0) return -1;
  if (vm_tensor_is_compatible(tensor, vm->alignment)) return 0;
  *copy = vm_tensor_copy_value(vm_host_allocator(vm), value);
  return *copy != NULL ? 0 : -1;
}

static int admit(struct admission *admission, const dso_any *value, dso_any *admitted);

static int count_items(struct admission *admission, const dso_array_object *array) {
  if (admission->depth == MOST_NESTED)
    return raised_format("ValueError", "tuples are nested too deeply, expected at most %d levels",
                         MOST_NESTED);
  if (array->size > MOST_ITEMS - admission->num_items)
    return raised_format("ValueError", "too many items in tuples, expected at most %d in total",
                         MOST_ITEMS);
  admission->num_items += array->size;
  return 0;
}

static int admit_items(struct admission *admission, const dso_array_object *array,
                       dso_array_object *copy, int *is_changed) {
  int status = 0;
  admission->depth++;
  for (int64_t i = 0; i < array->size && status == 0; i++) {
    status = admit(admission, &array->items[i], &copy->items[i]);
    if (status == 0) status = vm_own(admission->vm, &copy->items[i]);
    *is_changed |= copy->items[i].v_ptr != array->items[i].v_ptr;
  }
  admission->depth--;
  return status;
}

static int admit_itself(const dso_any *value, dso_any *admitted) {
  *admitted = *value;
  any_retain(value);
  return 0;
}

/* Admit the array itself, or a new array if one of its items was replaced. */
static int admit_array(struct admission *admission, const dso_any *value, dso_any *admitted) {
  dso_array_object *array = value->v_ptr, *copy;
  int is_changed = 0;
  if (array_object_is_admitted(array)) return admit_itself(value, admitted);
  if (count_items(admission, array) != 0 || (copy = array_object_new(array->size)) == NULL)
    return -1;
  int status = admit_items(admission, array, copy, &is_changed);
  if (status == 0) array_object_set_admitted(is_changed ? copy : array);
  if (status == 0 && is_changed) {
    *admitted = any_of_object(copy);
    return 0;
  }
  object_release(&copy->object);
  return status == 0 ? admit_itself(value, admitted) : -1;
}

static int admit_text(int is_str, const char *data, size_t nbytes, dso_any *admitted) {
  if (object_make_string(admitted, is_str, data, nbytes) == 0) return 0;
  return raised_format("OutOfMemoryError", "no memory for a string of %zu bytes", nbytes);
}

static int admit(struct admission *admission, const dso_any *value, dso_any *admitted) {
  const dso_byte_array *bytes = value->v_ptr;
  dso_tensor_object *copy;
  switch (value->type_index) {
    case DSO_TENSOR:
    case DSO_DLTENSOR_PTR:
      if (copy_incompatible(admission->vm, value, &copy) != 0) return -1;
      *admitted = copy != NULL ? any_of_object(copy) : *value;
      if (copy == NULL) any_retain(value);
      return 0;
    case DSO_ARRAY: return admit_array(admission, value, admitted);
    case DSO_RVALUE_REF:
      return raised_format("TypeError", "argument is an rvalue reference, expected a value");
    case DSO_RAW_STR:
      if (value->v_c_str == NULL) break;
      return admit_text(1, value->v_c_str, strlen(value->v_c_str), admitted);
    case DSO_BYTE_ARRAY_PTR: return admit_text(0, bytes->data, (size_t)bytes->size, admitted);
    default: return admit_itself(value, admitted);
  }
  *admitted = (dso_any){.type_index = DSO_NONE};
  return 0;
}

int vm_admit(const struct vm *vm, const dso_any *argument, dso_any *value) {
  struct admission admission = {.vm = vm};
  return admit(&admission, argument, value);
}
