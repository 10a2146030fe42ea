/* glue_buffer.h: pointers that bytes or addresses may be passed for, and the extents that a
 * declaration requires of an argument. */
#ifndef DSO_PACKER_GLUE_BUFFER_H
#define DSO_PACKER_GLUE_BUFFER_H

#include "glue_take.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As dso_take_pointer, with `also`: DSO_ALSO_BYTES, DSO_ALSO_ADDRESS, or both. */
DSO_INLINE int dso_take_buffer(const dso_function *function, const dso_any *args, int32_t index,
                               int code, int also, void **out) {
  const dso_any *value = &args[index];
  const DLTensor *tensor = dso_tensor_of(value);
  dso_byte_array bytes = dso_raw_bytes_of(value);
  *out = NULL;
  if (DSO_LIKELY(tensor && dso_is_on_cpu(tensor) && dso_has_dtype(tensor, code, 8) &&
                 dso_is_contiguous(tensor) && dso_is_addressable(tensor, 1)))
    *out = (void *)dso_address_of(tensor);
  else if ((also & DSO_ALSO_ADDRESS) && value->type_index == DSO_OPAQUE_PTR) *out = value->v_ptr;
  else if ((also & DSO_ALSO_BYTES) && bytes.data) *out = (void *)(uintptr_t)bytes.data;
  else if (value->type_index != DSO_NONE)
    return dso_refuse_pointer(function, args, index, code, 8, also);
  return 0;
}

DSO_COLD static int dso_refuse_alignment(const dso_function *function, const dso_any *args,
                                         int32_t index, int alignment, const void *address) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "data aligned to %d bytes, found address 0x%llx of ", alignment,
          (unsigned long long)(uintptr_t)address);
  dso_say_value(&message, &args[index]);
  return dso_raise_message(&message, function, "ValueError");
}

/* A pointer to structs: bytes, as a tensor of uint8, at an address of this alignment. */
DSO_INLINE int dso_take_structs(const dso_function *function, const dso_any *args, int32_t index,
                                int alignment, int also, void **out) {
  if (dso_take_buffer(function, args, index, DSO_DT_UINT, also, out)) return -1;
  if (DSO_LIKELY((uintptr_t)*out % (uintptr_t)alignment == 0)) return 0;
  return dso_refuse_alignment(function, args, index, alignment, *out);
}

/* ---- Extents ---------------------------------------------------------------------------------
 * `x[n][4]`: the argument has at least n * 4 elements. They are checked after all arguments were
 * taken, since n may follow x. */

/* Numbers of elements, of which none is negative; the greatest number if it overflows. */
DSO_INLINE uint64_t dso_product(const int64_t *extents, int32_t count, uint64_t factor) {
  uint64_t product = factor;
  for (int32_t i = 0; i < count; i++)
    if (extents[i] == 0) return 0;
  for (int32_t i = 0; i < count; i++)
    if (__builtin_mul_overflow(product, (uint64_t)extents[i], &product)) return UINT64_MAX;
  return product;
}

DSO_INLINE int64_t dso_unsigned_extent(uint64_t extent) {
  return extent > INT64_MAX ? INT64_MAX : (int64_t)extent;
}

DSO_COLD static int dso_refuse_extents(const dso_function *function, const dso_any *args,
                                       int32_t index, int item_size, const int64_t *extents,
                                       int32_t count) {
  const dso_any *value = &args[index];
  const char *kind = value->type_index == DSO_NONE ? "TypeError" : "ValueError";
  dso_message message;
  dso_say_where(&message, function, index);
  for (int32_t i = 0; i < count; i++) {
    if (extents[i] >= 0) continue;
    dso_say(&message, "extents of at least 0, found ");
    dso_say_list(&message, extents, count);
    return dso_raise_message(&message, function, "ValueError");
  }
  dso_say(&message, "at least %llu %s",
          (unsigned long long)dso_product(extents, count, (uint64_t)item_size),
          item_size == 1 ? "elements" : "bytes");
  if (count) {
    dso_say(&message, " for ");
    dso_say_list(&message, extents, count);
  }
  dso_say(&message, ", found ");
  dso_say_value(&message, value);
  if (!dso_tensor_of(value) && dso_raw_bytes_of(value).data)
    dso_say(&message, " of size %llu", (unsigned long long)dso_raw_bytes_of(value).size);
  return dso_raise_message(&message, function, kind);
}

/* Refuse an argument of fewer elements than extents say; `item_size` is the size of a struct, 1
 * for numbers. A tensor of as many dimensions must have the same extents but the first. */
DSO_INLINE int dso_check_extents(const dso_function *function, const dso_any *args, int32_t index,
                                 int item_size, const int64_t *extents, int32_t count) {
  const dso_any *value = &args[index];
  const DLTensor *tensor = dso_tensor_of(value);
  uint64_t required, found;
  int fits = value->type_index != DSO_NONE || count == 0;
  for (int32_t i = 0; i < count; i++) fits &= extents[i] >= 0;
  if (!fits) return dso_refuse_extents(function, args, index, item_size, extents, count);
  if (value->type_index == DSO_NONE || value->type_index == DSO_OPAQUE_PTR) return 0;
  required = dso_product(extents, count, (uint64_t)item_size);
  found = tensor ? dso_product(tensor->shape, tensor->ndim, 1) : dso_raw_bytes_of(value).size;
  fits = found >= required;
  if (tensor && tensor->ndim == count && item_size == 1)
    for (int32_t i = 1; i < count; i++) fits &= tensor->shape[i] == extents[i];
  if (DSO_LIKELY(fits)) return 0;
  return dso_refuse_extents(function, args, index, item_size, extents, count);
}

#ifdef __cplusplus
}
#endif

#endif
