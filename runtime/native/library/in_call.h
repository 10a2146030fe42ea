/* The objects that each thread is calling, so that their resources are not freed during a call.
 *
 * Entering and leaving a call are plain stores. The thread that frees pays instead, with a barrier
 * in all threads (membarrier(2)): after it, every call that started before is visible. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { IN_CALL_DEPTH = 61 };

struct in_call {
  struct in_call *next; /* entries are never removed; another thread reuses this one */
  int is_taken;
  uint32_t depth; /* may exceed IN_CALL_DEPTH */
  const void *objects[IN_CALL_DEPTH];
};

extern _Thread_local struct in_call *in_call_here; /* NULL before the thread's first call */
extern int in_call_needs_fence;                    /* true if the system lacks membarrier */

/* Make the thread's entry. Return NULL without memory. */
struct in_call *in_call_begin(void);

/* Store `depth`, ordered before the thread's later reads. */
static inline void in_call_set_depth(struct in_call *here, uint32_t depth) {
  __atomic_store_n(&here->depth, depth, __ATOMIC_RELEASE);
  if (__builtin_expect(in_call_needs_fence, 0)) __atomic_thread_fence(__ATOMIC_SEQ_CST);
  else __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Record that this thread calls `object`. Return NULL without memory. */
static inline struct in_call *in_call_enter(const void *object) {
  struct in_call *here = in_call_here != NULL ? in_call_here : in_call_begin();
  if (here == NULL) return NULL;
  uint32_t depth = here->depth;
  if (depth < IN_CALL_DEPTH) __atomic_store_n(&here->objects[depth], object, __ATOMIC_RELAXED);
  in_call_set_depth(here, depth + 1);
  return here;
}

static inline void in_call_leave(struct in_call *here) { in_call_set_depth(here, here->depth - 1); }

/* True if a thread may be calling `object`. The caller first stores a mark that later calls will
 * see, and then calls in_call_barrier. */
int in_call_any(const void *object);

/* Call once before in_call_any, for any number of objects. */
void in_call_barrier(void);
