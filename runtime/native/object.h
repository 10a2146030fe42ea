/* TVM FFI heap objects: references, and making our own. No Python.h. */
#ifndef DSO_PACKER_NATIVE_OBJECT_H
#define DSO_PACKER_NATIVE_OBJECT_H

#include <stddef.h>

#include "../include/dso_abi.h"

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
void *object_new_unset(size_t nbytes, int32_t type_index,
                       void (*deleter)(void *self, int flags));
void object_free(void *object, int flags);

/* A Str or Bytes object with a copy of the text and a NUL behind it; NULL without memory. */
dso_object *object_new_string(int32_t type_index, const char *data, size_t nbytes);

/* A str or bytes value that owns what it needs: TVM FFI's strings of up to 7 bytes lie in the value
 * itself. 0, or -1 without memory. */
int object_make_string(dso_any *value, int is_str, const char *data, size_t nbytes);

#endif
