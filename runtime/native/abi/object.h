/* TVM FFI heap objects: references, and making our own. No Python.h. */
#ifndef DSO_PACKER_ABI_OBJECT_H
#define DSO_PACKER_ABI_OBJECT_H

#include <stddef.h>

#include "dso_abi.h"

/* TVM FFI c_api.h, TVMFFIObject: the count of one strong reference; all those together hold one
 * weak one. TVM FFI reserves two words in front of an object (TVMFFIObjectAllocHeader, and the
 * Python wrapper before it): NULL says that nobody owns them. */
#define OBJECT_ONE (1 | (uint64_t)1 << 32)
enum { OBJECT_RESERVED = 2 };

/* A Tensor object: the DLTensor stands behind the header. */
typedef struct {
  dso_object object;
  DLTensor tensor;
} dso_tensor_object;

/* Take and drop one strong reference; the last one runs the object's deleter. */
static inline void object_retain(dso_object *object) { dso_object_retain(object); }
static inline void object_release(dso_object *object) { dso_object_release(object); }

/* A zeroed object of `nbytes`, its header included, with one reference; NULL without memory. Its
 * deleter ends with object_free, which frees once the weak references went, too. */
void *object_new(size_t nbytes, int32_t type_index, void (*deleter)(void *self, int flags));
/* The same, with nothing set but the header. */
void *object_new_unset(size_t nbytes, int32_t type_index, void (*deleter)(void *self, int flags));
void object_free(void *object, int flags);

/* Let the header, and the reserved words in front of it, be those of a new object. */
static inline void object_begin(dso_object *object, int32_t type_index,
                                void (*deleter)(void *self, int flags)) {
  void **reserved = (void **)(void *)object - OBJECT_RESERVED;
  for (int i = 0; i < OBJECT_RESERVED; i++) reserved[i] = NULL;
  *object =
      (dso_object){.combined_ref_count = OBJECT_ONE, .type_index = type_index, .deleter = deleter};
}

/* Whether the caller's reference is the only one: then nobody can come by another. */
static inline int object_is_sole(const dso_object *object) {
  return __atomic_load_n(&object->combined_ref_count, __ATOMIC_ACQUIRE) == OBJECT_ONE;
}

/* A Str or Bytes object with a copy of the text and a NUL behind it; NULL without memory. */
dso_object *object_new_string(int32_t type_index, const char *data, size_t nbytes);

/* A str or bytes value that owns what it needs: TVM FFI's strings of up to 7 bytes lie in the value
 * itself. 0, or -1 without memory. */
int object_make_string(dso_any *value, int is_str, const char *data, size_t nbytes);

#endif
