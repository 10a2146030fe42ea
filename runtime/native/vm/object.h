/* The objects of TVM FFI that the virtual machine makes: shapes and arrays.
 *
 * Each function returns NULL with MemoryError raised if memory is exhausted. */
#pragma once

#include <stddef.h>

#include "abi/ending.h"
#include "abi/object.h"

/* TVM FFI c_api.h: TVMFFIShapeCell follows the header. */
typedef struct {
  dso_object object;
  const int64_t *dims;
  size_t ndim;
} dso_shape_object;

/* TVM FFI c_api.h: TVMFFISeqCell follows the header. */
typedef struct {
  dso_object object;
  dso_any *items;
  int64_t size, capacity;
  void (*free_items)(void *items); /* NULL: the items are stored in the object */
} dso_array_object;

/* A new Shape object. */
dso_object *shape_object_new(size_t ndim, const int64_t *dims);

/* A new Array object with `size` items, all None, for the caller to fill. */
dso_array_object *array_object_new(int64_t size);

/* Return 1 if all items of an Array object were admitted (admit.c). Then they are not checked again
 * when the array is passed again or becomes an item of another one. */
int array_object_is_admitted(const dso_array_object *array);
void array_object_set_admitted(dso_array_object *array); /* no effect if another library made it */

static inline int is_object(const dso_any *value) { return value->type_index >= DSO_OBJECT; }

static inline void any_retain(const dso_any *value) {
  if (is_object(value)) object_retain(value->v_ptr);
}

static inline void any_release(const dso_any *value) {
  if (is_object(value)) object_release(value->v_ptr);
}

static inline dso_any any_of_object(void *object) {
  return (dso_any){.type_index = ((dso_object *)object)->type_index, .v_ptr = object};
}
