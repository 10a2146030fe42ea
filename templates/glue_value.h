/* glue_value.h: structs and unions by value whose bytes are passed. */
#ifndef DSO_PACKER_GLUE_VALUE_H
#define DSO_PACKER_GLUE_VALUE_H

#include "glue_buffer.h"
#include "glue_give.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes of a tensor, of Bytes, or at an address. */
DSO_INLINE int dso_take_value(const dso_function *function, const dso_any *args, int32_t index,
                              size_t size, void *out) {
  const int64_t one = 1;
  const int also = DSO_ALSO_ADDRESS | DSO_ALSO_BYTES;
  void *data;
  if (dso_take_buffer(function, args, index, DSO_DT_UINT, also, &data) ||
      dso_check_extents(function, args, index, (int)size, &one, 1))
    return -1;
  if (!data) return dso_refuse_type(function, args, index, "a struct");
  __builtin_memcpy(out, data, size);
  return 0;
}

DSO_INLINE int dso_give_value(dso_any *result, const void *data, size_t size) {
  if (dso_give_heap_string(result, (const char *)data, size)) return -1;
  ((dso_object *)result->v_ptr)->type_index = result->type_index = DSO_BYTES;
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
