/* Allocation of TVM FFI objects and strings. */
#include "abi/object.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"

enum { RESERVED = OBJECT_RESERVED * sizeof(void *) };

void *object_new_unset(size_t nbytes, int32_t type_index, void (*deleter)(void *self, int flags)) {
  char *memory = heap_new(RESERVED + nbytes);
  if (memory == NULL) return NULL;
  dso_object *object = (dso_object *)(void *)(memory + RESERVED);
  object_begin(object, type_index, deleter);
  return object;
}

void *object_new(size_t nbytes, int32_t type_index, void (*deleter)(void *self, int flags)) {
  dso_object *object = object_new_unset(nbytes, type_index, deleter);
  if (object != NULL) memset(object + 1, 0, nbytes - sizeof *object);
  return object;
}

void object_free(void *object, int flags) {
  if (flags & DSO_DELETE_WEAK) free((char *)object - RESERVED);
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

int object_make_string(dso_any *value, int is_str, const char *data, size_t nbytes) {
  dso_any made = {.type_index = is_str ? DSO_SMALL_STR : DSO_SMALL_BYTES,
                  .small_len = (uint32_t)nbytes};
  if (nbytes < sizeof made.v_bytes) {
    if (nbytes > 0) memcpy(made.v_bytes, data, nbytes);
  } else {
    dso_object *string = object_new_string(is_str ? DSO_STR : DSO_BYTES, data, nbytes);
    if (string == NULL) return -1;
    made = (dso_any){.type_index = string->type_index, .v_ptr = string};
  }
  *value = made; /* last: `data` may point into *value */
  return 0;
}
