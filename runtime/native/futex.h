/* Waiting for a word of memory to change: a short spin, then sleep. */
#ifndef DSO_PACKER_NATIVE_FUTEX_H
#define DSO_PACKER_NATIVE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/* Spin while *word is `value`, for some 50 us at most; 1 when it changed. */
int spin_while(const _Atomic uint32_t *word, uint32_t value);

/* Sleep while *word is `value`; may return early. Wake `count` of those who sleep there; the word
 * may be gone by then. */
void futex_wait(const _Atomic uint32_t *word, uint32_t value);
void futex_wake(const _Atomic uint32_t *word, int count);

#endif
