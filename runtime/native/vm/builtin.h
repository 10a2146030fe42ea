/* What the files of the virtual machine's own functions share. No Python.h. */
#ifndef DSO_PACKER_VM_BUILTIN_H
#define DSO_PACKER_VM_BUILTIN_H

#include "vm/vm.h"

/* The one function that the loop does itself. */
#define VM_INVOKE_CLOSURE "vm.builtin.invoke_closure"

enum { VM_MOST_DIMS = 64 };

/* The extents of a shape, or of a tuple of ints, which are copied. */
struct vm_dims {
  const int64_t *dims;
  int64_t ndim;
  int64_t room[VM_MOST_DIMS];
};

/* Read argument `number` of a function as a shape; 0, or -1 with TypeError raised. */
int vm_read_dims(const char *name, int number, const dso_any *value, struct vm_dims *dims);

/* Raise TypeError "vm.builtin.<name>: argument <number>, expected <x>, found <what it is>"; -1. */
int vm_refuse_argument(const char *name, int number, const char *expected, const dso_any *found);

/* The text of an error context with a colon behind it, cut where it is too long; or nothing. */
enum { VM_CONTEXT_SIZE = 300 };
const char *vm_context(const dso_any *value, char *text);

/* What a value is, for messages. */
const char *vm_type_name(const dso_any *value);

/* ---- vm_memory.c, vm_shape.c, vm_check.c */

#define VM_BUILTIN(name) \
  int name(struct vm_run *run, const dso_any *args, int32_t num_args, dso_any *result)

VM_BUILTIN(vm_alloc_storage);
VM_BUILTIN(vm_alloc_tensor);
VM_BUILTIN(vm_reshape);
VM_BUILTIN(vm_to_device);
VM_BUILTIN(vm_ensure_zero_offset);
VM_BUILTIN(vm_read_if_cond);

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

#endif
