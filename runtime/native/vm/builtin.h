/* Declarations that the files of the built-in functions share. */
#pragma once

#include "vm/vm.h"

/* The one built-in function that the interpreter loop runs itself. */
#define VM_INVOKE_CLOSURE "vm.builtin.invoke_closure"

/* The function that the others are not made of: TVM has none with this name. */
#define VM_WEIGHT "dso.weight"
#define VM_ANY_ALIGNMENT "dso.any_alignment" /* of tensors that callers pass */

/* The function of R.memory.view, and its name in TVM until 2025. */
#define VM_VIEW "runtime.TVMTensorCreateView"
#define VM_OLD_VIEW "runtime.TVMArrayCreateView"

enum { VM_MOST_DIMS = 64 };

/* The extents of a shape, or of a tuple of ints, which are copied to `room`. */
struct vm_dims {
  const int64_t *dims;
  int64_t ndim;
  int64_t room[VM_MOST_DIMS];
};

/* Read argument `number` of a function as a shape. Returns 0, or -1 with TypeError raised. */
int vm_read_dims(const char *name, int number, const dso_any *value, struct vm_dims *dims);

/* Raise TypeError "vm.builtin.<name>: argument <number>, expected <x>, found <type>"; a name with a
 * point is the whole name. Returns -1. */
int vm_refuse_argument(const char *name, int number, const char *expected, const dso_any *found);

/* The text of an error context followed by a colon, truncated; empty if the value is not text. */
enum { VM_CONTEXT_SIZE = 300 };
const char *vm_context(const dso_any *value, char *text);

/* The name of a value's type, for messages. */
const char *vm_type_name(const dso_any *value);

/* ---- The functions (memory.c, weights.c, state.c, sequence.c, shape.c, check.c) */

#define VM_BUILTIN(name) \
  int name(struct vm_run *run, const dso_any *args, int32_t num_args, dso_any *result)

VM_BUILTIN(vm_copy);
VM_BUILTIN(vm_alloc_storage);
VM_BUILTIN(vm_alloc_tensor);
VM_BUILTIN(vm_reshape);
VM_BUILTIN(vm_view);
VM_BUILTIN(vm_to_device);
VM_BUILTIN(vm_ensure_zero_offset);
VM_BUILTIN(vm_read_if_cond);

VM_BUILTIN(vm_weight);

VM_BUILTIN(vm_state_extent);
VM_BUILTIN(vm_state_expect);
VM_BUILTIN(vm_state_read);
VM_BUILTIN(vm_state_append);
VM_BUILTIN(vm_state_write);

VM_BUILTIN(vm_sequence_length);
VM_BUILTIN(vm_sequence_at);
VM_BUILTIN(vm_sequence_insert);
VM_BUILTIN(vm_sequence_erase);
VM_BUILTIN(vm_optional_has);
VM_BUILTIN(vm_optional_get);

VM_BUILTIN(vm_alloc_shape_heap);
VM_BUILTIN(vm_match_shape);
VM_BUILTIN(vm_make_shape);
VM_BUILTIN(vm_match_prim_value);
VM_BUILTIN(vm_make_prim_value);
VM_BUILTIN(vm_shape_of);
VM_BUILTIN(vm_tensor_to_shape);

VM_BUILTIN(vm_check_tensor_info);
VM_BUILTIN(vm_check_shape_info);
VM_BUILTIN(vm_check_prim_value_info);
VM_BUILTIN(vm_check_tuple_info);
VM_BUILTIN(vm_check_func_info);
VM_BUILTIN(vm_check_string_info);
