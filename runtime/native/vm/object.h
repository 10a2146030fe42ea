/* The objects of TVM FFI that the virtual machine makes: shapes and arrays. No Python.h.
 *
 * All return NULL without memory, with MemoryError raised. */
#ifndef DSO_PACKER_VM_OBJECT_H
#define DSO_PACKER_VM_OBJECT_H

#include <stddef.h>

#include "abi/object.h"

/* TVM FFI c_api.h, TVMFFIShapeCell behind the header. */
typedef struct {
  dso_object object;
  const int64_t *dims;
  size_t ndim;
} dso_shape_object;

/* TVM FFI c_api.h, TVMFFISeqCell behind the header. */
typedef struct {
  dso_object object;
  dso_any *items;
  int64_t size, capacity;
  void (*free_items)(void *items); /* NULL: they lie in the object */
} dso_array_object;

/* A Shape object. */
dso_object *shape_object_new(size_t ndim, const int64_t *dims);

/* An Array object of so many None, for the caller to fill. */
dso_array_object *array_object_new(int64_t size);

/* Whether all of an Array object has been admitted to a machine (vm_admit.c): then it is not gone
 * through again, however often it is passed, or an item of others. */
int array_object_is_admitted(const dso_array_object *array);
void array_object_set_admitted(dso_array_object *array); /* nothing if another library made it */

/* Objects that hold values may be as deep in each other as a program makes them, so none of them
 * ends within another: one that is to end while another does waits until that has. */
struct ending {
  struct ending *next;
  void (*end)(struct ending *self);
};
void end_in_turn(struct ending *self, void (*end)(struct ending *self));

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

#endif
