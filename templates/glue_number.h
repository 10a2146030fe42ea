/* glue_number.h: complex numbers. */
#ifndef DSO_PACKER_GLUE_NUMBER_H
#define DSO_PACKER_GLUE_NUMBER_H

#include "glue_array.h"

#ifdef __cplusplus
extern "C" {
#endif

__extension__ typedef float _Complex dso_complex64;
__extension__ typedef double _Complex dso_complex128;

/* The only element of a complex tensor; return 0 if the value is not one. */
DSO_INLINE int dso_read_complex_tensor(const dso_any *value, double parts[2]) {
  const DLTensor *tensor = dso_tensor_of(value);
  if (!tensor || !dso_is_on_cpu(tensor) || !tensor->data) return 0;
  const char *data = (const char *)dso_address_of(tensor);
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] != 1) return 0;
  if (dso_has_dtype(tensor, DSO_DT_COMPLEX, 128)) {
    __builtin_memcpy(parts, data, 2 * sizeof *parts);
    return 1;
  }
  if (!dso_has_dtype(tensor, DSO_DT_COMPLEX, 64)) return 0;
  float singles[2];
  __builtin_memcpy(singles, data, sizeof singles);
  parts[0] = (double)singles[0];
  parts[1] = (double)singles[1];
  return 1;
}

DSO_INLINE int dso_take_parts(const dso_function *function, const dso_any *args, int32_t index,
                              double parts[2]) {
  const dso_any *value = &args[index];
  const dso_sequence *array = dso_sequence_of(value);
  dso_function items = dso_items_of(function, index);
  parts[1] = 0;
  if (dso_read_complex_tensor(value, parts)) return 0;
  if (array && array->size == 2)
    return dso_take_float(&items, array->items, 0, &parts[0]) ||
                   dso_take_float(&items, array->items, 1, &parts[1])
               ? -1
               : 0;
  if (value->type_index == DSO_FLOAT || dso_is_integer(value))
    return dso_take_float(function, args, index, &parts[0]);
  return dso_refuse_type(function, args, index,
                         "a number, an array of two numbers or a complex tensor of one element");
}

DSO_INLINE int dso_take_complex128(const dso_function *function, const dso_any *args, int32_t index,
                                   dso_complex128 *out) {
  double parts[2] = {0, 0};
  if (dso_take_parts(function, args, index, parts)) return -1;
  __builtin_memcpy(out, parts, sizeof *out);
  return 0;
}

DSO_INLINE int dso_take_complex64(const dso_function *function, const dso_any *args, int32_t index,
                                  dso_complex64 *out) {
  double parts[2] = {0, 0};
  float singles[2];
  if (dso_take_parts(function, args, index, parts)) return -1;
  for (int i = 0; i < 2; i++) {
    singles[i] = (float)parts[i];
    if (__builtin_isinf(singles[i]) && !__builtin_isinf(parts[i]))
      return dso_refuse_float(function, index, parts[i]);
  }
  __builtin_memcpy(out, singles, sizeof *out);
  return 0;
}

DSO_INLINE int dso_give_complex128(dso_any *result, dso_complex128 value) {
  double parts[2];
  dso_any items[2];
  __builtin_memcpy(parts, &value, sizeof parts);
  items[0] = dso_float(parts[0]);
  items[1] = dso_float(parts[1]);
  return dso_give_array(result, items, 2);
}

DSO_INLINE int dso_give_complex64(dso_any *result, dso_complex64 value) {
  float parts[2];
  dso_any items[2];
  __builtin_memcpy(parts, &value, sizeof parts);
  items[0] = dso_float((double)parts[0]);
  items[1] = dso_float((double)parts[1]);
  return dso_give_array(result, items, 2);
}

#ifdef __cplusplus
}
#endif

#endif
