/* glue_array.h: Array objects: arguments of several values, and several results. */
#ifndef DSO_PACKER_GLUE_ARRAY_H
#define DSO_PACKER_GLUE_ARRAY_H

#include "dso_packer.h"
#include "glue_give.h"
#include "glue_take.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An argument that the caller omitted. */
DSO_INLINE dso_any dso_unsigned(uint64_t integer) {
  dso_any value = dso_int((int64_t)integer);
  value.small_len = integer > INT64_MAX ? DSO_UNSIGNED : 0;
  return value;
}

DSO_INLINE const dso_sequence *dso_sequence_of(const dso_any *value) {
  return value->type_index == DSO_ARRAY ? (const dso_sequence *)value->v_ptr : NULL;
}

/* The items of one value, for messages. */
DSO_INLINE dso_function dso_items_of(const dso_function *function, int32_t index) {
  dso_function items = *function;
  items.parameters += function->place == DSO_ITEM ? 0 : index;
  items.place = DSO_ITEM;
  items.outer = function;
  items.outer_index = index;
  return items;
}

/* The fields of a struct that is one value, for messages. */
DSO_INLINE dso_function dso_fields_of(const dso_function *function, int32_t index,
                                      const dso_parameter *fields) {
  dso_function made = *function;
  made.parameters = fields;
  made.place = DSO_FIELD;
  made.outer = function;
  made.outer_index = index;
  return made;
}

DSO_COLD static int dso_refuse_size(const dso_function *function, const dso_any *args,
                                    int32_t index, const char *least, int64_t size,
                                    const char *what) {
  const dso_sequence *array = dso_sequence_of(&args[index]);
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "an array of %s%lld %s, found ", least, (long long)size, what);
  if (array) dso_say(&message, "%lld", (long long)array->size);
  else dso_say_value(&message, &args[index]);
  return dso_raise_message(&message, function, array ? "ValueError" : "TypeError");
}

/* The items of an Array of exactly this size; NULL if the argument is not one. */
DSO_INLINE const dso_any *dso_take_items(const dso_function *function, const dso_any *args,
                                         int32_t index, int64_t size, const char *what) {
  const dso_sequence *array = dso_sequence_of(&args[index]);
  if (DSO_LIKELY(array && array->size == size)) return array->items;
  dso_refuse_size(function, args, index, "", size, what);
  return NULL;
}

/* ---- Arrays of text: an array of char *, which NULL terminates; freed after the call ---- */

DSO_INLINE void dso_free_strings(const char ***strings) { __builtin_free((void *)*strings); }
#define DSO_STRINGS __attribute__((cleanup(dso_free_strings)))

/* `least` is the extent that the declaration requires; -1 if none, then None is accepted. */
DSO_INLINE int dso_take_strings(const dso_function *function, const dso_any *args, int32_t index,
                                int64_t least, const char ***out) {
  const dso_sequence *array = dso_sequence_of(&args[index]);
  if (!array && args[index].type_index == DSO_NONE && least < 0) return 0;
  if (!array || array->size < least)
    return dso_refuse_size(function, args, index, "at least ", least < 0 ? 0 : least, "str");
  dso_function items = dso_items_of(function, index);
  *out = (const char **)__builtin_calloc((size_t)array->size + 1, sizeof **out);
  if (!*out) return dso_raise("MemoryError", "no memory for an array of str");
  for (int64_t i = 0; i < array->size; i++) {
    if (dso_take_string(&items, array->items, (int32_t)i, &(*out)[i])) return -1;
    if (!(*out)[i]) return dso_refuse_type(&items, array->items, (int32_t)i, "a str");
  }
  return 0;
}

/* ---- Several results ---- */

/* Store copies of the items as an Array of the loader. */
DSO_INLINE int dso_give_array(dso_any *result, const dso_any *items, int32_t count) {
  static dso_object *make;
  dso_object *found = __atomic_load_n(&make, __ATOMIC_ACQUIRE);
  if (!found) {
    if (dso_find("ffi.Array", &found)) return -1;
    __atomic_store_n(&make, found, __ATOMIC_RELEASE);
  }
  return dso_call_function(found, result, items, count) ? -1 : 0;
}

DSO_INLINE void dso_release_items(dso_any *items, int32_t count) {
  for (int32_t i = 0; i < count; i++) dso_release(&items[i]);
}

/* Store an Array of items that the wrapper owns, unless an item failed; release the items. */
DSO_INLINE int dso_give_items(dso_any *result, dso_any *items, int32_t count, int status) {
  if (!status) status = dso_give_array(result, items, count);
  dso_release_items(items, count);
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
