/* glue_give.h: storing results. Each dso_give_ function returns 0; one that allocates may also
 * return -1 with the error raised. */
#ifndef DSO_PACKER_GLUE_GIVE_H
#define DSO_PACKER_GLUE_GIVE_H

#include "glue.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline int dso_give_signed(dso_any *result, int64_t value) {
  result->type_index = DSO_INT;
  result->small_len = 0;
  result->v_int64 = value;
  return 0;
}

static inline int dso_give_unsigned(dso_any *result, uint64_t value) {
  result->type_index = DSO_INT;
  result->small_len = value > INT64_MAX ? DSO_UNSIGNED : 0;
  result->v_int64 = (int64_t)value;
  return 0;
}

/* LLVM leaves the bits above an i1 result undefined. */
static inline int dso_give_bool(dso_any *result, uint8_t value) {
  result->type_index = DSO_BOOL;
  result->small_len = 0;
  result->v_int64 = value & 1;
  return 0;
}

static inline int dso_give_float(dso_any *result, double value) {
  result->type_index = DSO_FLOAT;
  result->small_len = 0;
  result->v_float64 = value;
  return 0;
}

/* NULL becomes None. */
static inline int dso_give_address(dso_any *result, const void *address) {
  result->type_index = address ? DSO_OPAQUE_PTR : DSO_NONE;
  result->small_len = 0;
  result->v_int64 = 0;
  result->v_ptr = (void *)(uintptr_t)address;
  return 0;
}

/* A value that the function owns. */
static inline int dso_give_any(dso_any *result, dso_any value) {
  *result = value;
  return 0;
}

/* A Str object, followed by its text. TVM FFI reserves the words before an object
 * (TVMFFIObjectAllocHeader and the Python wrapper before it): NULL means that they are unused. */
typedef struct {
  void *python_wrapper;
  void (*delete_space)(void *object);
  dso_object object;
  dso_byte_array bytes;
} dso_heap_string;

/* flags: 1 for the last strong reference, 2 for the last weak reference. */
static inline void dso_delete_string(void *object, int flags) {
  if (flags & 2) __builtin_free((char *)object - offsetof(dso_heap_string, object));
}

static inline int dso_give_heap_string(dso_any *result, const char *text, size_t nbytes) {
  dso_heap_string *string = (dso_heap_string *)__builtin_calloc(1, sizeof *string + nbytes + 1);
  if (!string) return dso_raise("MemoryError", "no memory for a string result");
  __builtin_memcpy(string + 1, text, nbytes);
  string->object.combined_ref_count = 1 | (uint64_t)1 << 32;
  string->object.type_index = DSO_STR;
  string->object.deleter = dso_delete_string;
  string->bytes.data = (const char *)(string + 1);
  string->bytes.size = nbytes;
  result->type_index = DSO_STR;
  result->small_len = 0;
  result->v_ptr = &string->object;
  return 0;
}

static inline int dso_give_string(dso_any *result, const char *text) {
  size_t nbytes = text ? __builtin_strlen(text) : 0;
  result->type_index = text ? DSO_SMALL_STR : DSO_NONE;
  result->small_len = (uint32_t)nbytes;
  result->v_int64 = 0;
  if (nbytes >= sizeof result->v_bytes) return dso_give_heap_string(result, text, nbytes);
  if (nbytes) __builtin_memcpy(result->v_bytes, text, nbytes);
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
