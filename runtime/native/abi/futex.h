/* Waiting for a word of memory to change: a short spin, then sleep. */
#ifndef DSO_PACKER_ABI_FUTEX_H
#define DSO_PACKER_ABI_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* How long to spin. To wake a thread takes some 50 us in a virtual machine: whoever waits for one
 * that runs spins as long, and then sleeps. A worker that is idle spins longer, so that one which
 * was woken in vain, too late for its task, is there for the next. */
enum { SPIN_FOR_OTHERS_NS = 50000, SPIN_IDLE_NS = 200000 };

/* Spin while *word is `value`, for so long at most; 1 when it changed. */
int spin_while(const _Atomic uint32_t *word, uint32_t value, int64_t ns);

/* Sleep while *word is `value`; may return early. Wake `count` of those who sleep there; the word
 * may be gone by then. */
void futex_wait(const _Atomic uint32_t *word, uint32_t value);
void futex_wake(const _Atomic uint32_t *word, int count);

#endif
