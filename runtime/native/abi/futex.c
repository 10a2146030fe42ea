/* Spinning on a word, and futex(2). */
#define _GNU_SOURCE /* syscall */
#include "abi/futex.h"

#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUND = 32 }; /* about 1 us */

/* As in linux/futex.h, which musl-gcc does not find. */
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

static inline void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Yield the processor between rounds: the awaited thread may need it. */
int spin_while(const _Atomic uint32_t *word, uint32_t value, int64_t ns) {
  int64_t end = 0;
  do {
    for (int i = 0; i < ROUND; i++) {
      if (atomic_load_explicit(word, memory_order_acquire) != value) return 1;
      relax();
    }
    if (end == 0) end = now_ns() + ns;
    (void)sched_yield();
  } while (now_ns() < end);
  return 0;
}

void futex_wait(const _Atomic uint32_t *word, uint32_t value) {
  (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void futex_wake(const _Atomic uint32_t *word, int count) {
  (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
