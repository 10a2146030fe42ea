/* The time of each call instruction of a machine that measures. */
#pragma once

#include <stdint.h>

/* By instruction of the machine; threads add at once. */
struct vm_cost {
  int64_t calls, nanoseconds;
};

/* Nanoseconds since a fixed time (profile.c). */
int64_t vm_now(void);

/* Add the time since `*last`, the end of the call before. */
static inline void vm_cost_add(struct vm_cost *cost, int64_t *last) {
  int64_t now = vm_now();
  __atomic_fetch_add(&cost->calls, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&cost->nanoseconds, now - *last, __ATOMIC_RELAXED);
  *last = now;
}
