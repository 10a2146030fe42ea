/* TVM FFI heap objects: references and allocation. */
#pragma once

#include <stddef.h>

#include "dso_abi.h"

/* TVM FFI c_api.h, TVMFFIObject: OBJECT_ONE is the count of one strong reference; all strong
 * references together hold one weak reference. TVM FFI reserves two words before an object
 * (TVMFFIObjectAllocHeader, preceded by the Python wrapper); NULL means unused. */
#define OBJECT_ONE (1 | (uint64_t)1 << 32)
enum { OBJECT_RESERVED = 2 };

/* A Tensor object: the header, then the DLTensor. */
typedef struct {
  dso_object object;
  DLTensor tensor;
} dso_tensor_object;

/* Take and drop one strong reference. Dropping the last one runs the object's deleter. */
static inline void object_retain(dso_object *object) { dso_object_retain(object); }
static inline void object_release(dso_object *object) { dso_object_release(object); }

/* Return a zeroed object of `nbytes` including the header, with one reference, or NULL without
 * memory. Its deleter must end with object_free, which frees the memory after the last weak
 * reference is dropped. */
void *object_new(size_t nbytes, int32_t type_index, void (*deleter)(void *self, int flags));
/* The same, but only the header is initialised. */
void *object_new_unset(size_t nbytes, int32_t type_index, void (*deleter)(void *self, int flags));
void object_free(void *object, int flags);

/* Initialise the header and the reserved words before it. */
static inline void object_begin(dso_object *object, int32_t type_index,
                                void (*deleter)(void *self, int flags)) {
  void **reserved = (void **)(void *)object - OBJECT_RESERVED;
  for (int i = 0; i < OBJECT_RESERVED; i++) reserved[i] = NULL;
  *object =
      (dso_object){.combined_ref_count = OBJECT_ONE, .type_index = type_index, .deleter = deleter};
}

/* True if the caller's reference is the only one; then no other thread can take one. */
static inline int object_is_sole(const dso_object *object) {
  return __atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE) == OBJECT_ONE;
}

/* True if there is one strong reference; other code may have weak ones. */
static inline int object_is_held_once(const dso_object *object) {
  return (uint32_t)__atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE) == 1;
}

/* Return a Str or Bytes object with a copy of the text and a NUL after it, or NULL without
 * memory. */
dso_object *object_new_string(int32_t type_index, const char *data, size_t nbytes);

/* Store a str or bytes value that owns a copy of `data`. TVM FFI stores strings of up to 7 bytes in
 * the value itself. Return 0, or -1 without memory. */
int object_make_string(dso_any *value, int is_str, const char *data, size_t nbytes);
