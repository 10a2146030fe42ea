/* calls.h: the memory that a call of a Numba function has allocated, and not yet released.
 *
 * Compiled code that raises leaves out the references that it holds. So each MemInfo that is made
 * during a call is in the circle of the call until it is released. If the call fails, those in the
 * circle are released: neither arguments nor results have references to them. */
#ifndef DSO_PACKER_NUMBA_CALLS_H
#define DSO_PACKER_NUMBA_CALLS_H

#include "nrt.h"

/* A call, or one part of a parallel loop in it. Only its thread changes the circle. */
typedef struct nrt_call {
  struct nrt_links blocks;
  struct nrt_call *outer; /* of the thread before */
  nrt_meminfo *released;  /* by other threads: a stack */
  int is_shared;          /* other threads run, which may release blocks */
  int has_caught;         /* the code has handled an exception */
} nrt_call;

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

extern _Thread_local nrt_call *nrt_current; /* NULL: no blocks are pending */

void nrt_call_defer(nrt_meminfo *block);
void nrt_call_drain(nrt_call *self);
void nrt_call_finish(nrt_call *self, int is_failed);

/* Compiled code goes on after an exception of a function that it called. */
void nb_caught(void);

/* The circles of the parts of a loop, which run in any thread; `call` may be NULL. */
void nrt_parts_begin(nrt_call *call, nrt_call *parts, int64_t count);
void nrt_parts_end(nrt_call *call, nrt_call *parts, int64_t count);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

static inline void nrt_call_add(nrt_call *self, nrt_meminfo *block) {
  struct nrt_links *first = self->blocks.next;
  block->call = self;
  block->links = (struct nrt_links){first, &self->blocks};
  first->previous = &block->links;
  self->blocks.next = &block->links;
  if (self->is_shared && __atomic_load_n(&self->released, __ATOMIC_RELAXED)) nrt_call_drain(self);
}

static inline void nrt_unlink(nrt_meminfo *block) {
  block->links.next->previous = block->links.previous;
  block->links.previous->next = block->links.next;
}

/* Returns 0 if the circle is another thread's, which then frees the block. */
static inline int nrt_call_remove(nrt_meminfo *block) {
  if (block->call->is_shared && block->call != nrt_current) {
    nrt_call_defer(block);
    return 0;
  }
  nrt_unlink(block);
  return 1;
}

static inline void nrt_call_start(nrt_call *self) {
  self->blocks.next = self->blocks.previous = &self->blocks;
  self->released = NULL;
  self->is_shared = self->has_caught = 0;
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
  if (block == NULL || block->call == NULL) return;
  nrt_unlink(block);
  block->call = NULL;
}

static inline void nrt_call_end(nrt_call *self, int is_failed) {
  nrt_current = self->outer;
  if (self->blocks.next != &self->blocks) nrt_call_finish(self, is_failed);
}

#endif
