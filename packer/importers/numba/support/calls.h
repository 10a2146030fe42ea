/* calls.h: the memory that a call of a Numba function has allocated, and not yet released.
 *
 * Compiled code that raises leaves out the references that it holds. So each MemInfo that is made
 * during a call is in the circle of the call until it is released. If the call fails, those in the
 * circle are released: neither arguments nor results have references to them. */
#ifndef DSO_PACKER_NUMBA_CALLS_H
#define DSO_PACKER_NUMBA_CALLS_H

#include "nrt.h"

/* A call, or one part of a parallel loop in it. */
typedef struct nrt_call {
  struct nrt_links blocks;
  struct nrt_call *outer; /* of the thread before */
  int is_shared;          /* other threads may add and remove blocks */
  int is_locked;
  int has_caught; /* the code has handled an exception */
} nrt_call;

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

extern _Thread_local nrt_call *nrt_current; /* NULL: no blocks are noted */

void nrt_call_lock(nrt_call *self);
void nrt_call_settle(nrt_call *self, int is_failed);

/* Compiled code goes on after an exception of a function that it called. */
void nb_caught(void);

/* The circles of the parts of a loop, which run in any thread; `call` may be NULL. */
void nrt_parts_begin(nrt_call *call, nrt_call *parts, int64_t count);
void nrt_parts_end(nrt_call *call, nrt_call *parts, int64_t count);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

static inline void nrt_call_unlock(nrt_call *self) {
  __atomic_store_n(&self->is_locked, 0, __ATOMIC_RELEASE);
}

static inline void nrt_call_add(nrt_call *self, nrt_meminfo *block) {
  if (self->is_shared) nrt_call_lock(self);
  struct nrt_links *first = self->blocks.next;
  block->call = self;
  block->links = (struct nrt_links){first, &self->blocks};
  first->previous = &block->links;
  self->blocks.next = &block->links;
  if (self->is_shared) nrt_call_unlock(self);
}

static inline void nrt_call_remove(nrt_meminfo *block) {
  nrt_call *self = block->call;
  if (self->is_shared) nrt_call_lock(self);
  block->links.next->previous = block->links.previous;
  block->links.previous->next = block->links.next;
  block->call = NULL;
  if (self->is_shared) nrt_call_unlock(self);
}

static inline void nrt_call_start(nrt_call *self) {
  self->blocks.next = self->blocks.previous = &self->blocks;
  self->is_shared = self->is_locked = self->has_caught = 0;
}

static inline void nrt_call_begin(nrt_call *self) {
  nrt_call_start(self);
  self->outer = nrt_current;
  nrt_current = self;
}

/* The memory of an argument that was made for the call. */
static inline void nrt_call_take(nrt_call *self, nrt_meminfo *block) {
  if (block != NULL && block->call == NULL) nrt_call_add(self, block);
}

/* The memory of a result outlives the call. */
static inline void nrt_call_keep(nrt_meminfo *block) {
  if (block != NULL && block->call != NULL) nrt_call_remove(block);
}

static inline void nrt_call_end(nrt_call *self, int is_failed) {
  nrt_current = self->outer;
  if (self->blocks.next != &self->blocks) nrt_call_settle(self, is_failed);
}

#endif
