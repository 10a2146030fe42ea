/* The built-in functions for ONNX's sequences, which are tuples, and optionals, which may be None:
 * dso.sequence.length, .at, .insert and .erase, dso.optional.has and .get. The last argument of those
 * that refuse a value is a text, with which the message begins. */
#include <inttypes.h>

#include "abi/raised.h"
#include "vm/builtin.h"

/* The place of argument 1 in the tuple of argument 0; negative ones count from the end, and the end
 * is one for `most` = 1. Returns -1 with IndexError raised if it is outside. */
static int64_t place_in(const dso_any *args, int64_t most, const dso_any *context) {
  char text[VM_CONTEXT_SIZE];
  int64_t index = args[1].v_int64, length = ((dso_array_object *)args[0].v_ptr)->size;
  if (index >= -length && index < length + most) return index < 0 ? index + length : index;
  return raised_format("IndexError",
                       "%sposition %" PRId64 " in a sequence of %" PRId64
                       " tensors, expected %" PRId64 " to %" PRId64,
                       vm_context(context, text), index, length, -length, length + most - 1);
}

static int is_indexed(const char *name, const dso_any *args) {
  if (args[0].type_index != DSO_ARRAY) vm_refuse_argument(name, 0, "a tuple", &args[0]);
  else if (args[1].type_index != DSO_INT) vm_refuse_argument(name, 1, "int", &args[1]);
  else return 1;
  return 0;
}

/* Replace `removed` items at a place by `item`, or by nothing, in a new tuple. */
static int spliced(struct vm_run *run, const dso_array_object *from, int64_t place, int64_t removed,
                   const dso_any *item, dso_any *result) {
  int64_t added = item != NULL;
  dso_array_object *made = array_object_new(from->size - removed + added);
  if (made == NULL) return -1;
  for (int64_t i = 0; i < made->size; i++) {
    const dso_any *source = i < place           ? &from->items[i]
                            : i < place + added ? item
                                                : &from->items[i - added + removed];
    made->items[i] = *source;
    any_retain(source);
    if (source == item && vm_own(vm_of_run(run), &made->items[i]) != 0) {
      object_release(&made->object);
      return -1;
    }
  }
  array_object_set_admitted(made);
  *result = any_of_object(made);
  return 0;
}

VM_BUILTIN(vm_sequence_length) {
  (void)run, (void)num_args;
  if (args[0].type_index != DSO_ARRAY)
    return vm_refuse_argument("dso.sequence.length", 0, "a tuple", &args[0]);
  *result = (dso_any){.type_index = DSO_INT, .v_int64 = ((dso_array_object *)args[0].v_ptr)->size};
  return 0;
}

/* Sequence, position, context. */
VM_BUILTIN(vm_sequence_at) {
  (void)run, (void)num_args;
  if (!is_indexed("dso.sequence.at", args)) return -1;
  dso_array_object *array = args[0].v_ptr;
  int64_t place = place_in(args, 0, &args[2]);
  if (place < 0) return -1;
  *result = array->items[place];
  any_retain(result);
  return 0;
}

/* Sequence, position before which the item is inserted, item, context. */
VM_BUILTIN(vm_sequence_insert) {
  (void)num_args;
  if (!is_indexed("dso.sequence.insert", args)) return -1;
  dso_array_object *array = args[0].v_ptr;
  int64_t place = place_in(args, 1, &args[3]);
  return place < 0 ? -1 : spliced(run, array, place, 0, &args[2], result);
}

/* Sequence, position, context. */
VM_BUILTIN(vm_sequence_erase) {
  (void)num_args;
  if (!is_indexed("dso.sequence.erase", args)) return -1;
  dso_array_object *array = args[0].v_ptr;
  int64_t place = place_in(args, 0, &args[2]);
  return place < 0 ? -1 : spliced(run, array, place, 1, NULL, result);
}

VM_BUILTIN(vm_optional_has) {
  (void)run, (void)num_args;
  *result = (dso_any){.type_index = DSO_INT, .v_int64 = args[0].type_index != DSO_NONE};
  return 0;
}

/* Optional, context. */
VM_BUILTIN(vm_optional_get) {
  char text[VM_CONTEXT_SIZE];
  (void)run, (void)num_args;
  if (args[0].type_index == DSO_NONE)
    return raised_format("ValueError", "%sexpected an optional with a value, found None",
                         vm_context(&args[1], text));
  *result = args[0];
  any_retain(result);
  return 0;
}
