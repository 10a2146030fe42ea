#include "object.h"

#include <stdlib.h>
#include <string.h>

/* TVM FFI c_api.h, TVMFFIObject: all strong references together hold one weak one. */
static const uint64_t STRONG_ONE = 1, WEAK_ONE = (uint64_t)1 << 32, STRONG_MASK = 0xffffffff;

/* TVM FFI reserves the words in front of an object (TVMFFIObjectAllocHeader, and the Python
 * wrapper before it): NULL says that nobody owns them. */
enum { RESERVED = 2 * sizeof(void *) };

void object_retain(dso_object *object) {
  __atomic_fetch_add(&object->combined_ref_count, STRONG_ONE, __ATOMIC_RELAXED);
}

void object_release(dso_object *object) {
  uint64_t *count = &object->combined_ref_count;
  uint64_t before = __atomic_fetch_sub(count, STRONG_ONE, __ATOMIC_ACQ_REL);
  if ((before & STRONG_MASK) != STRONG_ONE || object->deleter == NULL) return;
  if (before == (STRONG_ONE | WEAK_ONE)) {
    object->deleter(object, OBJECT_DELETE_STRONG | OBJECT_DELETE_WEAK);
    return;
  }
  object->deleter(object, OBJECT_DELETE_STRONG);
  before = __atomic_fetch_sub(count, WEAK_ONE, __ATOMIC_ACQ_REL);
  if (before >> 32 == 1) object->deleter(object, OBJECT_DELETE_WEAK);
}

void *object_new(size_t nbytes, int32_t type_index, void (*deleter)(void *self, int flags)) {
  char *memory = calloc(1, RESERVED + nbytes);
  if (memory == NULL) return NULL;
  dso_object *object = (dso_object *)(void *)(memory + RESERVED);
  object->combined_ref_count = STRONG_ONE | WEAK_ONE;
  object->type_index = type_index;
  object->deleter = deleter;
  return object;
}

void object_free(void *object, int flags) {
  if (flags & OBJECT_DELETE_WEAK) free((char *)object - RESERVED);
}

dso_object *object_new_string(int32_t type_index, const char *data, size_t nbytes) {
  typedef struct {
    dso_object object;
    dso_byte_array bytes;
    char text[];
  } string_object;
  string_object *string = object_new(sizeof *string + nbytes + 1, type_index, object_free);
  if (string == NULL) return NULL;
  memcpy(string->text, data, nbytes);
  string->bytes.data = string->text;
  string->bytes.size = nbytes;
  return &string->object;
}
