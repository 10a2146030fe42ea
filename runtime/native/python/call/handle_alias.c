/* Handles of one object: every handle is registered by its address, so that the function that
 * releases the object closes all of them.
 *
 * A handle with `release` owns the object, or one reference to it if several handles own it. */
#include "python/call/handle.h"

enum { FIRST_BUCKETS = 256 };

/* Chains of handles by address; guarded by the GIL. The number of buckets is a power of two. */
static Handle **buckets;
static size_t num_buckets, num_handles;

static Handle **bucket_of(const void *address) {
  uint64_t hash = (uint64_t)(uintptr_t)address * 0x9e3779b97f4a7c15u;
  return &buckets[(size_t)(hash >> 32) & (num_buckets - 1)];
}

static void link_handle(Handle *self) {
  Handle **bucket = bucket_of(self->address);
  self->next = *bucket;
  self->place = bucket;
  if (self->next != NULL) self->next->place = &self->next;
  *bucket = self;
}

/* Without memory for more buckets the chains get longer. */
static void grow(void) {
  size_t count = num_buckets;
  Handle **old = buckets, **more = PyMem_Calloc(count * 2, sizeof(Handle *));
  if (more == NULL) return;
  buckets = more;
  num_buckets = count * 2;
  for (size_t i = 0; i < count; i++)
    for (Handle *self = old[i], *next; self != NULL; self = next) {
      next = self->next;
      link_handle(self);
    }
  PyMem_Free(old);
}

int handle_register(Handle *self) {
  if (buckets == NULL) {
    buckets = PyMem_Calloc(FIRST_BUCKETS, sizeof(Handle *));
    if (buckets == NULL) return -1;
    num_buckets = FIRST_BUCKETS;
  }
  if (num_handles >= num_buckets) grow();
  link_handle(self);
  num_handles++;
  return 0;
}

void handle_unregister(Handle *self) {
  *self->place = self->next;
  if (self->next != NULL) self->next->place = self->place;
  num_handles--;
}

/* A handle without a kind may be one of the same object. */
static int is_alias(const Handle *self, const Handle *other) {
  return other != self && other->address == self->address && !other->is_closed &&
         (self->kind == other->kind || self->kind == NULL || other->kind == NULL) &&
         handle_same_library(self->library, other->library);
}

/* Return the next open handle of the same object, after `last`, or NULL. */
static Handle *next_alias(const Handle *self, const Handle *last) {
  Handle *other = last != NULL ? last->next : *bucket_of(self->address);
  while (other != NULL && !is_alias(self, other)) other = other->next;
  return other;
}

static int has_other_owner(const Handle *self) {
  Handle *other = NULL;
  while ((other = next_alias(self, other)) != NULL)
    if (other->release != NULL) return 1;
  return 0;
}

int handle_is_not_freeable(const Handle *self) {
  if (self->memory != NULL || self->place == NULL) return 1;
  const Handle *other = NULL;
  while ((other = next_alias(self, other)) != NULL)
    if (other->memory != NULL) return 1;
  return 0;
}

Handle *handle_owner_of(Handle *self) {
  Handle *root = self;
  while (root->parent != NULL) root = root->parent;
  if (root->memory != NULL || root->release != NULL) return root;
  Handle *other = NULL;
  while ((other = next_alias(self, other)) != NULL)
    if (other->release != NULL) return other;
  return NULL;
}

int handle_is_used(const Handle *self) {
  const Handle *other = self->uses == 0 ? next_alias(self, NULL) : self;
  while (other != NULL && other->uses == 0) other = next_alias(self, other);
  return other != NULL;
}

void handle_close_aliases(const Handle *self) {
  if (self->release != NULL && has_other_owner(self)) return;
  Handle *other = NULL;
  while ((other = next_alias(self, other)) != NULL) other->is_closed = 1;
}

/* The heir must not outlive the parent of the object. */
static int can_inherit(const Handle *self, Handle *other) {
  return !PyObject_GC_IsFinalized((PyObject *)other) &&
         (self->parent == NULL || self->parent == other->parent);
}

int handle_bequeath(Handle *self) {
  if (has_other_owner(self)) return 0;
  Handle *heir = next_alias(self, NULL);
  while (heir != NULL && !can_inherit(self, heir)) heir = next_alias(self, heir);
  if (heir == NULL) return 0;
  heir->release = self->release;
  self->release = NULL;
  return 1;
}
