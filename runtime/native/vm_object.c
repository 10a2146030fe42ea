#include "vm_object.h"

#include <string.h>

#include "raised.h"
#include "strides.h"

struct view {
  dso_tensor_object tensor;
  dso_object *owner;
  int64_t dims[]; /* shape, then strides */
};

static void delete_view(void *self, int flags) {
  if (flags & DSO_DELETE_STRONG) object_release(((struct view *)self)->owner);
  object_free(self, flags);
}

static void *no_memory(void) {
  raised_set("MemoryError", "no memory for an object of the virtual machine");
  return NULL;
}

dso_tensor_object *vm_tensor_view(DLDataType dtype, int32_t ndim, const int64_t *dims,
                                     dso_object *owner) {
  struct view *self = object_new_unset(
      sizeof *self + 2 * (size_t)ndim * sizeof *dims, DSO_TENSOR, delete_view);
  if (self == NULL) {
    object_release(owner);
    return no_memory();
  }
  self->owner = owner;
  self->tensor.tensor = (DLTensor){.ndim = ndim, .dtype = dtype, .shape = self->dims,
                                   .strides = self->dims + ndim};
  if (ndim > 0) memcpy(self->dims, dims, (size_t)ndim * sizeof *dims);
  strides_set(&self->tensor.tensor);
  return &self->tensor;
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

struct array_object {
  dso_array_object array;
  struct array_object *next;
  dso_any items[];
};

static void release_items(struct array_object *self) {
  for (int64_t i = 0; i < self->array.size; i++) any_release(&self->items[i]);
}

/* Arrays of arrays may be as deep as a program makes them, so one is not released within another:
 * those that end meanwhile wait in a list of the thread. */
static _Thread_local struct array_object *ended;
static _Thread_local int is_releasing;

static void release_ended(void) {
  is_releasing = 1;
  while (ended != NULL) {
    struct array_object *self = ended;
    ended = self->next;
    release_items(self);
    object_free(self, DSO_DELETE_WEAK);
  }
  is_releasing = 0;
}

static void delete_array(void *object, int flags) {
  struct array_object *self = object;
  if (flags == (DSO_DELETE_STRONG | DSO_DELETE_WEAK)) {
    self->next = ended;
    ended = self;
    if (!is_releasing) release_ended();
    return;
  }
  if (flags & DSO_DELETE_STRONG) release_items(self); /* someone has weak references to it */
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
