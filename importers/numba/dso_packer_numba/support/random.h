/* random.h: the states of Numba's random numbers, which compiled code reads and writes. */
#ifndef DSO_PACKER_NUMBA_RANDOM_H
#define DSO_PACKER_NUMBA_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum { RANDOM_WORDS = 624 };

/* The Mersenne Twister MT19937, and the second of two normal numbers that were made together. */
struct random_state {
  int32_t index; /* of the next word; 624: all are used */
  uint32_t words[RANDOM_WORDS];
  int32_t has_gauss;
  double gauss;
  int32_t is_initialized;
};

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

/* Each thread has its own: of `random`, of `numpy.random`, and of Numba itself. A state that was
 * never seeded is filled by the system. */
struct random_state *numba_get_py_random_state(void);
struct random_state *numba_get_np_random_state(void);
struct random_state *numba_get_internal_random_state(void);

void numba_rnd_init(struct random_state *state, uint32_t seed);
void nb_random_init_by_words(struct random_state *state, const uint32_t *keys, size_t count);

/* Seed the calling thread's numbers of `random` and `numpy.random`, as their seed functions do. */
void nb_random_seed(uint32_t seed);

/* Make the next 624 words. */
void numba_rnd_shuffle(struct random_state *state);

/* A Poisson number of a mean of 10 or more. */
int64_t numba_poisson_ptrs(struct random_state *state, double mean);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

#endif
