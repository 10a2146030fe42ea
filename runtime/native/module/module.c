/* A node of the module tree: its creation and end, and the functions that keep it alive. */
#include "module/module.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/resident.h"

struct import_block {
  struct import_block *older;
  size_t capacity;
  dso_module *items[];
};

static void *no_memory(void) { return raised_null("OutOfMemoryError", "no memory for a module"); }

/* ---- The end of a module. A tree may be deep, so a module that ends does not end its imports
 * itself: they wait until it has. */

static void free_imports(dso_module *self) {
  for (size_t i = 0; i < self->num_imports; i++) module_release(self->imports[i]);
  while (self->blocks != NULL) {
    struct import_block *older = self->blocks->older;
    free(self->blocks);
    self->blocks = older;
  }
}

static void end_module(struct ending *ending) {
  const uint64_t weak_one = (uint64_t)1 << 32;
  dso_module *self = (dso_module *)(void *)((char *)ending - offsetof(dso_module, ending));
  if (self->is_resident) resident_forget(self);
  if (self->type->end != NULL) self->type->end(self);
  free_imports(self);
  free(self->type_key);
  if (self->owner != NULL) object_release(self->owner);
  uint64_t before =
      __atomic_fetch_sub(&self->object.combined_ref_count, weak_one, __ATOMIC_ACQ_REL);
  if (before >> 32 == 1) object_free(self, DSO_DELETE_WEAK);
}

/* end_module drops a weak reference when it is done. If others remain, the caller will drop that of
 * the strong ones itself, so end_module gets a separate one. */
static void delete_module(void *object, int flags) {
  const uint64_t weak_one = (uint64_t)1 << 32;
  dso_module *self = object;
  if (!(flags & DSO_DELETE_STRONG)) {
    object_free(self, flags);
    return;
  }
  if (!(flags & DSO_DELETE_WEAK))
    __atomic_fetch_add(&self->object.combined_ref_count, weak_one, __ATOMIC_RELAXED);
  end_in_turn(&self->ending, end_module);
}

/* ---- Its creation */

static const struct module_type unfinished;

void *module_new(const struct module_type *type, struct span type_key, size_t nbytes,
                 dso_object *owner) {
  dso_module *self = object_new(nbytes, DSO_MODULE, delete_module);
  if (self == NULL) return no_memory();
  self->type = &unfinished;
  self->type_key = heap_new(type_key.size + 1);
  if (self->type_key == NULL) {
    module_release(self);
    return no_memory();
  }
  memcpy(self->type_key, type_key.data, type_key.size);
  self->type_key[type_key.size] = '\0';
  self->type = type;
  self->owner = owner;
  if (owner != NULL) object_retain(owner);
  return self;
}

int module_try_retain(dso_module *self) {
  uint64_t *count = &self->object.combined_ref_count;
  uint64_t now = __atomic_load_n(count, __ATOMIC_RELAXED);
  while ((uint32_t)now != 0)
    if (__atomic_compare_exchange_n(count, &now, now + 1, 1, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return 1;
  return 0;
}

dso_module *module_of_object(const dso_object *object) {
  return object->deleter == delete_module ? (dso_module *)(uintptr_t)object : NULL;
}

/* ---- Imports */

/* Readers may still use the old place, so it is kept. */
static int make_room(dso_module *self) {
  size_t capacity = self->num_imports > 0 ? 2 * self->num_imports : 1;
  struct import_block *block = heap_new(sizeof *block + capacity * sizeof *block->items);
  if (block == NULL) return no_memory(), -1;
  *block = (struct import_block){.older = self->blocks, .capacity = capacity};
  if (self->num_imports > 0)
    memcpy(block->items, self->imports, self->num_imports * sizeof *block->items);
  self->blocks = block;
  __atomic_store_n(&self->imports, block->items, __ATOMIC_RELEASE);
  return 0;
}

int module_append_import(dso_module *self, dso_module *imported) {
  int is_full = self->blocks == NULL || self->num_imports == self->blocks->capacity;
  if (is_full && make_room(self) != 0) return -1;
  module_retain(imported);
  self->imports[self->num_imports] = imported;
  __atomic_store_n(&self->num_imports, self->num_imports + 1, __ATOMIC_RELEASE);
  return 0;
}

/* ---- Functions */

struct module_function {
  dso_function_object function;
  dso_module *module;
  dso_safe_call call;
  void *handle;
};

static void delete_function(void *object, int flags) {
  struct module_function *self = object;
  dso_module *module = self->module;
  int is_last = (flags & DSO_DELETE_STRONG) != 0;
  object_free(self, flags);
  if (is_last) module_release(module);
}

static int call_function(void *object, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct module_function *self = object;
  return self->call(self->handle, args, num_args, result);
}

static dso_function *new_function(dso_module *module, dso_safe_call safe_call) {
  struct module_function *self = object_new(sizeof *self, DSO_FUNCTION, delete_function);
  if (self == NULL) return no_memory();
  self->function.safe_call = safe_call;
  self->module = module;
  module_retain(module);
  return &self->function;
}

dso_function *module_function_new(dso_module *module, dso_safe_call call, void *handle) {
  dso_function *function = new_function(module, call_function);
  if (function == NULL) return NULL;
  struct module_function *self = (struct module_function *)(void *)function;
  self->call = call;
  self->handle = handle;
  return function;
}

dso_function *module_function_of_code(dso_module *module, dso_safe_call code) {
  return new_function(module, code);
}
