/* The secret of the hashes of text: that of a Python with PYTHONHASHSEED=0, so that a hash is the
 * same in every process. */
#include <stdint.h>

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

extern const uint64_t _numba_hashsecret_djbx33a_suffix;
extern const uint64_t _numba_hashsecret_siphash_k0;
extern const uint64_t _numba_hashsecret_siphash_k1;
const uint64_t _numba_hashsecret_djbx33a_suffix = 0;
const uint64_t _numba_hashsecret_siphash_k0 = 0;
const uint64_t _numba_hashsecret_siphash_k1 = 0;
