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

DSO_INLINE int dso_is_complex(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  return tensor && tensor->dtype.code == DSO_DT_COMPLEX;
}

/* Pairs of floats of so many bits, or complex numbers, which have the same bytes. */
DSO_INLINE int dso_take_pairs(const dso_function *function, const dso_any *args, int32_t index,
                              int bits, void **out) {
  if (dso_is_complex(&args[index]))
    return dso_take_pointer(function, args, index, DSO_DT_COMPLEX, 2 * bits, out);
  return dso_take_pointer(function, args, index, DSO_DT_FLOAT, bits, out);
}

/* A pointer to pointers: an array of them, which only a loader makes, or an address. */
DSO_INLINE int dso_take_pointers(const dso_function *function, const dso_any *args, int32_t index,
                                 void **out) {
  const dso_any *value = &args[index];
  const DLTensor *tensor = dso_tensor_of(value);
  if (tensor && dso_is_on_cpu(tensor) && dso_has_dtype(tensor, DSO_DT_HANDLE, 64) &&
      dso_is_contiguous(tensor))
    *out = (void *)dso_address_of(tensor);
  else if (value->type_index == DSO_OPAQUE_PTR) *out = value->v_ptr;
  else if (value->type_index == DSO_NONE) *out = NULL;
  else
    return dso_refuse_type(function, args, index, "a list of arrays or handles, a handle or None");
  return 0;
}

/* ---- Extents ---------------------------------------------------------------------------------
 * `x[n][4]`: the argument has at least n * 4 elements; `x[][4]`: it has whole rows of 4. They are
 * checked after all arguments were taken, since n may follow x. `item_size` is the size of a struct,
 * 1 for numbers; a tensor of structs is one of bytes, whose last axis may be the struct. */

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

/* The number of elements of an argument, or of bytes if they are structs. */
DSO_INLINE uint64_t dso_number_of(const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  return tensor ? dso_product(tensor->shape, tensor->ndim, 1) : dso_raw_bytes_of(value).size;
}

/* Return the axis whose extent is not that of the rows, if the tensor has as many axes; else 0. */
DSO_INLINE int32_t dso_wrong_axis(const dso_any *value, int item_size, const int64_t *row,
                                  int32_t count) {
  const DLTensor *tensor = dso_tensor_of(value);
  int32_t ndim = count + (item_size == 1 ? 1 : 2);
  if (!tensor || tensor->ndim != ndim) return 0;
  if (item_size != 1 && tensor->shape[ndim - 1] != item_size) return 0;
  for (int32_t i = 0; i < count; i++)
    if (tensor->shape[i + 1] != row[i]) return i + 1;
  return 0;
}

DSO_INLINE int dso_is_negative(const int64_t *extents, int32_t count) {
  int found = 0;
  for (int32_t i = 0; i < count; i++) found |= extents[i] < 0;
  return found;
}

DSO_COLD static int dso_refuse_negative(const dso_function *function, int32_t index,
                                        const int64_t *extents, int32_t count) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "extents of at least 0, found ");
  dso_say_list(&message, extents, count);
  return dso_raise_message(&message, function, "ValueError");
}

/* End a message: "found float64[3, 2] on cpu". */
DSO_COLD static int dso_refuse_found(dso_message *message, const dso_function *function,
                                     const dso_any *value) {
  const char *kind = value->type_index == DSO_NONE ? "TypeError" : "ValueError";
  dso_say(message, ", found ");
  dso_say_value(message, value);
  if (!dso_tensor_of(value) && dso_raw_bytes_of(value).data)
    dso_say(message, " of size %llu", (unsigned long long)dso_raw_bytes_of(value).size);
  return dso_raise_message(message, function, kind);
}

DSO_COLD static int dso_refuse_axis(const dso_function *function, const dso_any *args,
                                    int32_t index, int32_t axis, int64_t extent) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "extent %lld of axis %d, found %lld in ", (long long)extent, (int)axis,
          (long long)dso_tensor_of(&args[index])->shape[axis]);
  dso_say_value(&message, &args[index]);
  return dso_raise_message(&message, function, "ValueError");
}

DSO_COLD static int dso_refuse_extents(const dso_function *function, const dso_any *args,
                                       int32_t index, int item_size, const int64_t *extents,
                                       int32_t count) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "at least %llu %s",
          (unsigned long long)dso_product(extents, count, (uint64_t)item_size),
          item_size == 1 ? "elements" : "bytes");
  if (count) {
    dso_say(&message, " for ");
    dso_say_list(&message, extents, count);
  }
  return dso_refuse_found(&message, function, &args[index]);
}

DSO_COLD static int dso_refuse_rows(const dso_function *function, const dso_any *args,
                                    int32_t index, int item_size, const int64_t *row,
                                    int32_t count) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "whole rows of %llu %s for ",
          (unsigned long long)dso_product(row, count, (uint64_t)item_size),
          item_size == 1 ? "elements" : "bytes");
  dso_say_list(&message, row, count);
  return dso_refuse_found(&message, function, &args[index]);
}

/* Refuse an argument of fewer elements than extents say. A tensor of as many axes must have the same
 * extents but the first. */
DSO_INLINE int dso_check_extents(const dso_function *function, const dso_any *args, int32_t index,
                                 int item_size, const int64_t *extents, int32_t count) {
  const dso_any *value = &args[index];
  int32_t axis;
  if (dso_is_negative(extents, count)) return dso_refuse_negative(function, index, extents, count);
  if (value->type_index == DSO_OPAQUE_PTR || (value->type_index == DSO_NONE && count == 0))
    return 0;
  axis = count > 1 ? dso_wrong_axis(value, item_size, extents + 1, count - 1) : 0;
  if (axis) return dso_refuse_axis(function, args, index, axis, extents[axis]);
  if (DSO_LIKELY(value->type_index != DSO_NONE &&
                 dso_number_of(value) >= dso_product(extents, count, (uint64_t)item_size)))
    return 0;
  return dso_refuse_extents(function, args, index, item_size, extents, count);
}

/* Refuse an argument that is not whole rows of these extents. */
DSO_INLINE int dso_check_rows(const dso_function *function, const dso_any *args, int32_t index,
                              int item_size, const int64_t *row, int32_t count) {
  const dso_any *value = &args[index];
  uint64_t size = dso_product(row, count, (uint64_t)item_size);
  int32_t axis;
  if (dso_is_negative(row, count)) return dso_refuse_negative(function, index, row, count);
  if (value->type_index == DSO_OPAQUE_PTR || value->type_index == DSO_NONE) return 0;
  axis = dso_wrong_axis(value, item_size, row, count);
  if (axis) return dso_refuse_axis(function, args, index, axis, row[axis - 1]);
  if (DSO_LIKELY(size ? dso_number_of(value) % size == 0 : dso_number_of(value) == 0)) return 0;
  return dso_refuse_rows(function, args, index, item_size, row, count);
}

#ifdef __cplusplus
}
#endif

#endif
