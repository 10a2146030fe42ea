/* Waiting for a word of memory to change: a short spin, then sleep. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

/* How long to spin. Waking a thread takes about 50 us in a virtual machine, so a thread that waits
 * for a running one spins that long before it sleeps. An idle worker spins longer: a worker that
 * was woken too late for one task is then ready for the next. */
enum { SPIN_FOR_OTHERS_NS = 50000, SPIN_IDLE_NS = 200000 };

/* Spin while *word is `value`, for at most `ns`. Return 1 if it changed. */
int spin_while(const _Atomic uint32_t *word, uint32_t value, int64_t ns);

/* Sleep while *word is `value`; may return early. */
void futex_wait(const _Atomic uint32_t *word, uint32_t value);

/* Wake up to `count` threads that sleep on the word, whose memory may already be freed. */
void futex_wake(const _Atomic uint32_t *word, int count);
