/* The table of the virtual machine's built-in functions (TVM's `vm.builtin.*`, dso.weight,
 * dso.state.*, dso.sequence.* and dso.optional.*), and the functions for values and closures. */
#include "vm/builtin.h"

#include <inttypes.h>
#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"

/* ---- Raising */

int vm_refuse_argument(const char *name, int number, const char *expected, const dso_any *found) {
  const char *prefix = strchr(name, '.') == NULL ? "vm.builtin." : "";
  return raised_format("TypeError", "%s%s: argument %d, expected %s, found %s", prefix, name,
                       number + 1, expected, vm_type_name(found));
}

const char *vm_type_name(const dso_any *value) {
  static const char *const plain[] = {"None",      "int",     "bool",     "float",
                                      "a pointer", "a dtype", "a device", "a tensor"};
  static const char *const heap[] = {"an object",  "str",     "bytes",    "an error",
                                     "a function", "a shape", "a tensor", "a tuple"};
  int32_t index = value->type_index;
  if (index >= 0 && index < 8) return plain[index];
  if (index == DSO_SMALL_STR) return "str";
  if (index == DSO_BIG_INT) return "an int beyond int64";
  if (index >= DSO_OBJECT && index < DSO_OBJECT + 8) return heap[index - DSO_OBJECT];
  return "a value of another type";
}

/* ---- Values */

/* It is read when code is bound. */
static VM_BUILTIN(any_alignment) {
  (void)run, (void)args, (void)num_args, (void)result;
  return 0;
}

static VM_BUILTIN(null_value) {
  (void)run, (void)args, (void)num_args, (void)result;
  return 0;
}

VM_BUILTIN(vm_copy) {
  (void)run, (void)num_args;
  any_retain(args);
  *result = *args;
  return 0;
}

static VM_BUILTIN(make_tuple) {
  dso_array_object *array = array_object_new(num_args);
  int status = array != NULL ? 0 : -1;
  for (int32_t i = 0; i < num_args && status == 0; i++) {
    array->items[i] = args[i];
    any_retain(&args[i]);
    status = vm_own(vm_of_run(run), &array->items[i]);
  }
  if (status == 0) {
    array_object_set_admitted(array);
    *result = any_of_object(array);
  } else if (array != NULL) object_release(&array->object);
  return status;
}

/* The item that arguments 0 and 1, a tuple and an index, refer to; NULL with an error raised. */
static dso_any *item_of(const char *name, const dso_any *args) {
  dso_array_object *array = args[0].v_ptr;
  int64_t index = args[1].v_int64;
  if (args[0].type_index != DSO_ARRAY) vm_refuse_argument(name, 0, "a tuple", &args[0]);
  else if (args[1].type_index != DSO_INT) vm_refuse_argument(name, 1, "int", &args[1]);
  else if (index < 0 || index >= array->size)
    raised_format("IndexError", "vm.builtin.%s: index %" PRId64 ", expected less than %" PRId64,
                  name, index, array->size);
  else return &array->items[index];
  return NULL;
}

static VM_BUILTIN(tuple_getitem) {
  const dso_any *item = item_of("tuple_getitem", args);
  (void)run, (void)num_args;
  if (item == NULL) return -1;
  any_retain(item);
  *result = *item;
  return 0;
}

/* TVM drops an item after its last use, before its tuple is freed. */
static VM_BUILTIN(tuple_reset_item) {
  dso_any *item = item_of("tuple_reset_item", args);
  (void)run, (void)num_args, (void)result;
  if (item == NULL) return -1;
  dso_any old = *item;
  *item = (dso_any){.type_index = DSO_NONE};
  any_release(&old);
  return 0;
}

/* ---- Functions */

/* The saved arguments become owned, like the items of a tuple. */
static VM_BUILTIN(make_closure) {
  dso_any tuple;
  if (args[0].type_index != DSO_FUNCTION)
    return vm_refuse_argument("make_closure", 0, "a function", &args[0]);
  if (make_tuple(run, args + 1, num_args - 1, &tuple) != 0) return -1;
  dso_array_object *saved = tuple.v_ptr;
  dso_object *closure = vm_closure_bind(args[0].v_ptr, saved->items, num_args - 1);
  object_release(&saved->object);
  if (closure == NULL) return -1;
  *result = any_of_object(closure);
  return 0;
}

/* Call a function with further arguments, followed by the extents of a shape. */
static VM_BUILTIN(call_tir_dyn) {
  struct vm_dims dims;
  (void)run;
  if (args[0].type_index != DSO_FUNCTION)
    return vm_refuse_argument("call_tir_dyn", 0, "a function", &args[0]);
  if (vm_read_dims("call_tir_dyn", num_args - 1, &args[num_args - 1], &dims) != 0) return -1;
  size_t num_plain = (size_t)num_args - 2, count = num_plain + (size_t)dims.ndim;
  dso_any *all = heap_new((count + 1) * sizeof *all);
  if (all == NULL) return raised_format("OutOfMemoryError", "no memory for %zu arguments", count);
  for (size_t i = 0; i < num_plain; i++) all[i] = args[1 + i];
  for (size_t i = num_plain; i < count; i++)
    all[i] = (dso_any){.type_index = DSO_INT, .v_int64 = dims.dims[i - num_plain]};
  int status = vm_call_function(args[0].v_ptr, all, (int32_t)count, result);
  free(all);
  return status;
}

/* The interpreter loop runs closures itself, on its own stack (VM_RUN_CLOSURE). */
static VM_BUILTIN(invoke_closure) {
  (void)run, (void)args, (void)num_args, (void)result;
  return raised_format("RuntimeError",
                       "vm.builtin.invoke_closure: called from outside the virtual machine, "
                       "expected a call from bytecode");
}

/* ---- The table */

const struct vm_builtin_row vm_builtins[] = {
    {"vm.builtin.null_value", null_value, 0, 0},
    {"vm.builtin.copy", vm_copy, 1, 1},
    {"vm.builtin.alloc_storage", vm_alloc_storage, 5, 5},
    {"vm.builtin.alloc_tensor", vm_alloc_tensor, 4, 5},
    {"vm.builtin.check_tensor_info", vm_check_tensor_info, 3, 4},
    {"vm.builtin.match_shape", vm_match_shape, 4, INT32_MAX},
    {"vm.builtin.make_shape", vm_make_shape, 2, INT32_MAX},
    {"vm.builtin.alloc_shape_heap", vm_alloc_shape_heap, 2, 2},
    {"vm.builtin.match_prim_value", vm_match_prim_value, 5, 5},
    {"vm.builtin.make_prim_value", vm_make_prim_value, 3, 3},
    {"vm.builtin.check_shape_info", vm_check_shape_info, 3, 3},
    {"vm.builtin.check_prim_value_info", vm_check_prim_value_info, 3, 3},
    {"vm.builtin.check_tuple_info", vm_check_tuple_info, 3, 3},
    {"vm.builtin.check_func_info", vm_check_func_info, 2, 2},
    {"vm.builtin.check_string_info", vm_check_string_info, 2, 2},
    {"vm.builtin.make_tuple", make_tuple, 0, INT32_MAX},
    {"vm.builtin.tuple_getitem", tuple_getitem, 2, 2},
    {"vm.builtin.tuple_reset_item", tuple_reset_item, 2, 2},
    {"vm.builtin.read_if_cond", vm_read_if_cond, 1, 1},
    {"vm.builtin.shape_of", vm_shape_of, 1, 1},
    {"vm.builtin.reshape", vm_reshape, 2, 2},
    {VM_VIEW, vm_view, 4, 4},
    {VM_OLD_VIEW, vm_view, 4, 4},
    {"vm.builtin.tensor_to_shape", vm_tensor_to_shape, 1, 1},
    {"vm.builtin.to_device", vm_to_device, 3, 4},
    {"vm.builtin.ensure_zero_offset", vm_ensure_zero_offset, 1, 1},
    {"vm.builtin.make_closure", make_closure, 1, INT32_MAX},
    {VM_INVOKE_CLOSURE, invoke_closure, 2, INT32_MAX},
    {"vm.builtin.call_tir_dyn", call_tir_dyn, 2, INT32_MAX},
    {VM_WEIGHT, vm_weight, 1, 1},
    {VM_ANY_ALIGNMENT, any_alignment, 0, 0},
    {"dso.state.extent", vm_state_extent, 2, 2},
    {"dso.state.expect", vm_state_expect, 3, 3},
    {"dso.state.read", vm_state_read, 3, 3},
    {"dso.state.append", vm_state_append, 3, 3},
    {"dso.state.write", vm_state_write, 3, 3},
    {"dso.sequence.length", vm_sequence_length, 1, 1},
    {"dso.sequence.at", vm_sequence_at, 3, 3},
    {"dso.sequence.insert", vm_sequence_insert, 4, 4},
    {"dso.sequence.erase", vm_sequence_erase, 3, 3},
    {"dso.optional.has", vm_optional_has, 1, 1},
    {"dso.optional.get", vm_optional_get, 2, 2},
    {NULL, NULL, 0, 0},
};

const struct vm_builtin_row *vm_find_builtin(const char *name) {
  for (const struct vm_builtin_row *row = vm_builtins; row->name != NULL; row++)
    if (strcmp(row->name, name) == 0) return row;
  return NULL;
}

int vm_builtin_arity(const char *name, int32_t *least, int32_t *most) {
  const struct vm_builtin_row *row = vm_find_builtin(name);
  if (row == NULL) return 0;
  *least = row->least;
  *most = row->most;
  return 1;
}
