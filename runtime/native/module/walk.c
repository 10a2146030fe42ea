/* The walk over a module tree, depth first in import order, each module once. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/module.h"

enum {
  FEW = 32
}; /* modules, in memory of the stack; the table of seen ones is at most half full */

struct walk {
  dso_module **pending;
  size_t num_pending, capacity;
  dso_module **seen; /* by address; NULL: a free slot */
  size_t num_seen, num_slots;
  dso_module *few_pending[FEW], *few_seen[2 * FEW];
};

static void begin(struct walk *self) {
  memset(self->few_seen, 0, sizeof self->few_seen);
  self->pending = self->few_pending;
  self->seen = self->few_seen;
  self->num_pending = self->num_seen = 0;
  self->capacity = FEW;
  self->num_slots = sizeof self->few_seen / sizeof *self->few_seen;
}

static void end(struct walk *self) {
  if (self->pending != self->few_pending) free(self->pending);
  if (self->seen != self->few_seen) free(self->seen);
}

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory to walk a tree of modules");
}

/* The slot of a module, or the free one where it belongs. The number of slots is a power of two. */
static dso_module **slot_of(dso_module **slots, size_t num_slots, dso_module *module) {
  size_t at = (size_t)((uintptr_t)module >> 4) * (size_t)0x9e3779b97f4a7c15;
  for (at >>= 16;; at++) {
    dso_module **slot = &slots[at & (num_slots - 1)];
    if (*slot == NULL || *slot == module) return slot;
  }
}

static int grow_seen(struct walk *self) {
  size_t num_slots = 4 * self->num_slots;
  dso_module **slots = heap_new_zeroed(num_slots, sizeof *slots);
  if (slots == NULL) return no_memory();
  for (size_t i = 0; i < self->num_slots; i++)
    if (self->seen[i] != NULL) *slot_of(slots, num_slots, self->seen[i]) = self->seen[i];
  if (self->seen != self->few_seen) free(self->seen);
  self->seen = slots;
  self->num_slots = num_slots;
  return 0;
}

/* 1 if the module is new, 0 if it was seen, or -1. */
static int see(struct walk *self, dso_module *module) {
  if (2 * self->num_seen >= self->num_slots && grow_seen(self) != 0) return -1;
  dso_module **slot = slot_of(self->seen, self->num_slots, module);
  if (*slot == module) return 0;
  *slot = module;
  self->num_seen++;
  return 1;
}

static int grow_pending(struct walk *self, size_t least) {
  size_t capacity = 2 * (self->num_pending + least);
  int is_first = self->pending == self->few_pending;
  dso_module **pending = heap_resize(is_first ? NULL : self->pending, capacity * sizeof *pending);
  if (pending == NULL) return no_memory();
  if (is_first) memcpy(pending, self->few_pending, self->num_pending * sizeof *pending);
  self->pending = pending;
  self->capacity = capacity;
  return 0;
}

/* The last import is pushed first, so that the first one is next. */
static int push_imports(struct walk *self, const dso_module *module) {
  dso_module *const *imports;
  size_t count = module_imports(module, &imports);
  if (count > self->capacity - self->num_pending && grow_pending(self, count) != 0) return -1;
  while (count > 0) self->pending[self->num_pending++] = imports[--count];
  return 0;
}

int module_visit(dso_module *root, int (*visit)(void *context, dso_module *module), void *context) {
  struct walk walk;
  int status = 0;
  begin(&walk);
  walk.pending[walk.num_pending++] = root;
  while (walk.num_pending > 0 && status == 0) {
    dso_module *module = walk.pending[--walk.num_pending];
    int is_new = see(&walk, module);
    if (is_new == 0) continue;
    status = is_new > 0 ? visit(context, module) : -1;
    if (status == 0) status = push_imports(&walk, module);
    else if (status == MODULE_VISIT_LEAF) status = 0;
  }
  end(&walk);
  return status;
}
