/* Shapes and arrays of the virtual machine. */
#include "vm/object.h"

#include <string.h>

#include "abi/raised.h"

static void *no_memory(void) {
  return raised_null("OutOfMemoryError", "no memory for an object of the virtual machine");
}

dso_object *shape_object_new(size_t ndim, const int64_t *dims) {
  dso_shape_object *self =
      object_new_unset(sizeof *self + ndim * sizeof *dims, DSO_SHAPE, object_free);
  if (self == NULL) return no_memory();
  int64_t *copy = (int64_t *)(void *)(self + 1);
  if (ndim > 0) memcpy(copy, dims, ndim * sizeof *dims);
  self->dims = copy;
  self->ndim = ndim;
  return &self->object;
}

/* ---- Arrays */

struct array_object {
  dso_array_object array;
  struct ending ending;
  int is_admitted;
  dso_any items[];
};

static void release_items(struct array_object *self) {
  for (int64_t i = 0; i < self->array.size; i++) any_release(&self->items[i]);
}

static void end_array(struct ending *ending) {
  struct array_object *self = (void *)((char *)ending - offsetof(struct array_object, ending));
  release_items(self);
  object_free(self, DSO_DELETE_WEAK);
}

static void delete_array(void *object, int flags) {
  struct array_object *self = object;
  if (flags == (DSO_DELETE_STRONG | DSO_DELETE_WEAK)) {
    end_in_turn(&self->ending, end_array);
    return;
  }
  if (flags & DSO_DELETE_STRONG) release_items(self); /* weak references remain */
  object_free(self, flags);
}

dso_array_object *array_object_new(int64_t size) {
  struct array_object *self =
      object_new(sizeof *self + (size_t)size * sizeof(dso_any), DSO_ARRAY, delete_array);
  if (self == NULL) return no_memory();
  self->array.items = self->items;
  self->array.size = self->array.capacity = size;
  return &self->array;
}

static struct array_object *own_array(const dso_array_object *array) {
  return array->object.deleter == delete_array ? (struct array_object *)(uintptr_t)array : NULL;
}

int array_object_is_admitted(const dso_array_object *array) {
  const struct array_object *self = own_array(array);
  return self != NULL && __atomic_load_n(&self->is_admitted, __ATOMIC_RELAXED);
}

void array_object_set_admitted(dso_array_object *array) {
  struct array_object *self = own_array(array);
  if (self != NULL) __atomic_store_n(&self->is_admitted, 1, __ATOMIC_RELAXED);
}
