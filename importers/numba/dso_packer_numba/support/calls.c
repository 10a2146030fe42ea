/* The memory that calls do not release. */
#include "calls.h"

#include <stddef.h>

static nrt_meminfo *block_of(struct nrt_links *links) {
  return (nrt_meminfo *)(void *)((char *)links - offsetof(nrt_meminfo, links));
}

void nrt_call_defer(nrt_meminfo *block) {
  nrt_meminfo **released = &block->call->released;
  nrt_meminfo *next = __atomic_load_n(released, __ATOMIC_RELAXED);
  do block->next_released = next;
  while (
      !__atomic_compare_exchange_n(released, &next, block, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

void nrt_call_drain(nrt_call *self) {
  nrt_meminfo *block = __atomic_exchange_n(&self->released, NULL, __ATOMIC_ACQUIRE);
  while (block != NULL) {
    nrt_meminfo *next = block->next_released;
    nrt_unlink(block);
    nrt_free_block(block);
    block = next;
  }
}

void nb_caught(void) {
  if (nrt_current != NULL) nrt_current->has_caught = 1;
}

/* Destroy all blocks, which may refer to each other: none is freed before the last is destroyed. */
static void release_all(nrt_call *self) {
  enum { HELD = 1 << 30 };
  struct nrt_links *end = &self->blocks, *next;
  for (struct nrt_links *at = end->next; at != end; at = at->next) {
    block_of(at)->refct += HELD;
    block_of(at)->call = NULL;
  }
  for (struct nrt_links *at = end->next; at != end; at = at->next) {
    nrt_meminfo *block = block_of(at);
    if (block->destroy != NULL) block->destroy(block->data, block->size, block->info);
  }
  for (struct nrt_links *at = end->next; at != end; at = next) {
    next = at->next;
    nrt_free_block(block_of(at));
  }
}

/* Release the memory of a call that failed, or that handled the failure of a function. After other
 * calls it stays: their code may have stored its address as a number. */
void nrt_call_finish(nrt_call *self, int is_failed) {
  if (is_failed || self->has_caught) {
    release_all(self);
    return;
  }
  for (struct nrt_links *at = self->blocks.next; at != &self->blocks; at = at->next)
    block_of(at)->call = NULL;
}

/* ---- Parallel loops */

void nrt_parts_begin(nrt_call *call, nrt_call *parts, int64_t count) {
  if (call == NULL) return;
  call->is_shared = 1;
  for (int64_t i = 0; i < count; i++) {
    nrt_call_start(&parts[i]);
    parts[i].is_shared = 1;
  }
}

/* The blocks of the parts become the call's: a list that it made may refer to them. */
void nrt_parts_end(nrt_call *call, nrt_call *parts, int64_t count) {
  if (call == NULL) return;
  call->is_shared = 0;
  nrt_call_drain(call);
  for (int64_t i = 0; i < count; i++) {
    struct nrt_links *end = &parts[i].blocks, *next;
    nrt_call_drain(&parts[i]);
    call->has_caught |= parts[i].has_caught;
    for (struct nrt_links *at = end->next; at != end; at = next) {
      next = at->next;
      nrt_call_add(call, block_of(at));
    }
  }
}
