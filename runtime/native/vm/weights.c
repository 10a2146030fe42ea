/* `dso.weight`: the tensor with a name, which is a constant. A machine gets these tensors when it
 * is made, and binds such a call to a copy of the reference (bind.c). */
#include <string.h>

#include "abi/raised.h"
#include "device/tensor_object.h"
#include "vm/builtin.h"

int64_t vm_weight_row(const struct vm_code *code) {
  for (size_t i = 0; i < code->num_functions; i++)
    if (code->functions[i].kind == VM_PACKED && strcmp(code->functions[i].name, VM_WEIGHT) == 0)
      return (int64_t)i;
  return -1;
}

void vm_mark_weights(const struct vm_code *code, unsigned char *marks) {
  int64_t row = vm_weight_row(code);
  for (size_t i = 0; i < code->num_instructions && row >= 0; i++) {
    size_t word = (size_t)vm_word(code->offsets, i);
    if (vm_word(code->words, word) != VM_CALL || vm_word(code->words, word + 2) != row) continue;
    int64_t argument = vm_word(code->words, word + 4); /* the only one: vm_verify counted them */
    if (vm_argument_kind(argument) == VM_CONSTANT) marks[vm_argument_value(argument)] = 1;
  }
}

int vm_read_text(const dso_any *value, const char **text, size_t *nbytes) {
  if (value->type_index == DSO_STR) {
    const dso_byte_array *bytes = (const dso_byte_array *)((const dso_object *)value->v_ptr + 1);
    *text = bytes->data;
    *nbytes = (size_t)bytes->size;
    return 1;
  }
  *text = value->v_bytes;
  *nbytes = value->small_len;
  return value->type_index == DSO_SMALL_STR && value->small_len < sizeof value->v_bytes;
}

/* Replace a compact tensor by a view of it that is read-only, unless it is. */
static int make_read_only(dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (value->type_index != DSO_TENSOR || tensor_value_is_readonly(value)) return 0;
  object_retain(value->v_ptr);
  dso_tensor_object *view =
      tensor_object_view(tensor->dtype, tensor->ndim, tensor->shape, value->v_ptr);
  if (view == NULL) return -1;
  view->tensor.data = tensor->data;
  view->tensor.device = tensor->device;
  view->tensor.byte_offset = tensor->byte_offset;
  tensor_object_mark(&view->object, TENSOR_READ_ONLY);
  any_release(value);
  *value = any_of_object(view);
  return 0;
}

/* ---- Binding */

size_t vm_count_weights(const struct vm_code *code, const struct vm_parts *parts) {
  size_t count = 0;
  for (size_t i = 0; parts->weights != NULL && i < code->num_constants; i++)
    count += parts->weights[i].type_index != DSO_NONE;
  return count;
}

int vm_bind_weights(struct vm *vm, const struct vm_code *code, const struct vm_parts *parts,
                    uint32_t *indices) {
  for (size_t i = 0; parts->weights != NULL && i < code->num_constants; i++) {
    dso_any *value = &vm->values[vm->num_values];
    if (parts->weights[i].type_index == DSO_NONE) continue;
    if (vm_bind_constant(vm, &parts->weights[i], value) != 0) return -1;
    indices[i] = (uint32_t)vm->num_values++;
    if (make_read_only(value) != 0) return -1;
  }
  return 0;
}

/* A call whose argument is not the name of a weight. */
VM_BUILTIN(vm_weight) {
  (void)run, (void)num_args, (void)result;
  return raised_format("TypeError", "%s: argument 1, expected a constant that is a str, found %s",
                       VM_WEIGHT, vm_type_name(&args[0]));
}
