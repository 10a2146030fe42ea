/* Random numbers: the generator MT19937 (Matsumoto, Nishimura, 1998) with a state per thread. */
#include "random.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

/* The same bits on every level of the processor. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

enum { MIDDLE = 397 };

/* ---- Seeds */

void numba_rnd_init(struct random_state *state, uint32_t seed) {
  for (uint32_t i = 0; i < RANDOM_WORDS; i++) {
    state->words[i] = seed;
    seed = UINT32_C(1812433253) * (seed ^ seed >> 30) + i + 1;
  }
  state->index = RANDOM_WORDS;
  state->has_gauss = 0;
  state->gauss = 0;
  state->is_initialized = 1;
}

/* One pass of the initialisation by an array: each word takes its predecessor in. */
static uint32_t pass(struct random_state *state, uint32_t at, size_t steps, uint32_t factor,
                     const uint32_t *keys, size_t count) {
  uint32_t *words = state->words;
  for (size_t step = 0; step < steps; step++) {
    uint32_t mixed = words[at] ^ (words[at - 1] ^ words[at - 1] >> 30) * factor;
    words[at] = keys != NULL ? mixed + keys[step % count] + (uint32_t)(step % count) : mixed - at;
    if (++at < RANDOM_WORDS) continue;
    words[0] = words[RANDOM_WORDS - 1];
    at = 1;
  }
  return at;
}

void nb_random_init_by_words(struct random_state *state, const uint32_t *keys, size_t count) {
  numba_rnd_init(state, 19650218);
  size_t steps = count > RANDOM_WORDS ? count : RANDOM_WORDS;
  uint32_t at = pass(state, 1, steps, 1664525, keys, count);
  pass(state, at, RANDOM_WORDS - 1, 1566083941, NULL, 0);
  state->words[0] = UINT32_C(0x80000000);
}

/* ---- A state per thread */

static _Thread_local struct random_state py_state, np_state, internal_state;

/* The parent's numbers must not be the child's: only this thread lives on in it. */
static void forget(void) {
  py_state.is_initialized = np_state.is_initialized = internal_state.is_initialized = 0;
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, forget); }

/* getrandom(2) as os.urandom; then /dev/urandom, for systems whose filter refuses the call. */
static int read_entropy(void *to, size_t nbytes) {
  char *at = to;
  while (nbytes > 0) {
    ssize_t got = getrandom(at, nbytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;
    at += got;
    nbytes -= (size_t)got;
  }
  if (nbytes == 0) return 0;
  FILE *device = fopen("/dev/urandom", "rbe");
  size_t got = device != NULL ? fread(at, 1, nbytes, device) : 0;
  if (device != NULL) (void)fclose(device);
  return got == nbytes ? 0 : -1;
}

static struct random_state *ready(struct random_state *state) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  uint32_t keys[RANDOM_WORDS];
  if (__builtin_expect(state->is_initialized, 1)) return state;
  (void)pthread_once(&once, watch_forks);
  if (read_entropy(keys, sizeof keys) != 0) {
    (void)fputs("fatal error: the system gives no random bytes; seed first\n", stderr);
    abort();
  }
  nb_random_init_by_words(state, keys, RANDOM_WORDS);
  return state;
}

struct random_state *numba_get_py_random_state(void) { return ready(&py_state); }
struct random_state *numba_get_np_random_state(void) { return ready(&np_state); }
struct random_state *numba_get_internal_random_state(void) { return ready(&internal_state); }

void nb_random_seed(uint32_t seed) {
  numba_rnd_init(&py_state, seed);
  numba_rnd_init(&np_state, seed);
}

/* ---- The generator */

/* The words from `first` on: each of itself, its successor and the word `distance` after it. */
static void twist(uint32_t *words, int first, int stop, int distance) {
  for (int i = first; i < stop; i++) {
    uint32_t joined = (words[i] & UINT32_C(0x80000000)) | (words[i + 1] & UINT32_C(0x7fffffff));
    words[i] = words[i + distance] ^ joined >> 1 ^ (-(joined & 1) & UINT32_C(0x9908b0df));
  }
}

void numba_rnd_shuffle(struct random_state *state) {
  uint32_t *words = state->words, last = words[RANDOM_WORDS - 1] & UINT32_C(0x80000000);
  twist(words, 0, RANDOM_WORDS - MIDDLE, MIDDLE);
  twist(words, RANDOM_WORDS - MIDDLE, RANDOM_WORDS - 1, MIDDLE - RANDOM_WORDS);
  uint32_t joined = last | (words[0] & UINT32_C(0x7fffffff)); /* the first follows the last */
  words[RANDOM_WORDS - 1] =
      words[MIDDLE - 1] ^ joined >> 1 ^ (-(joined & 1) & UINT32_C(0x9908b0df));
}

static uint32_t next_word(struct random_state *state) {
  if (state->index == RANDOM_WORDS) {
    numba_rnd_shuffle(state);
    state->index = 0;
  }
  uint32_t word = state->words[state->index++];
  word ^= word >> 11;
  word ^= word << 7 & UINT32_C(0x9d2c5680);
  word ^= word << 15 & UINT32_C(0xefc60000);
  return word ^ word >> 18;
}

/* 53 bits in [0, 1). */
static double next_double(struct random_state *state) {
  double high = next_word(state) >> 5, low = next_word(state) >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

/* ---- Poisson */

/* The logarithm of the gamma function for x >= 1: Stirling's series at x >= 7, and the recurrence
 * below. NumPy's coefficients and order of operations, for the same bits. */
static double log_gamma(double x) {
  static const double series[] = {
      8.333333333333333e-02, -2.777777777777778e-03, 7.936507936507937e-04, -5.952380952380952e-04,
      8.417508417508418e-04, -1.917526917526918e-03, 6.410256410256410e-03, -2.955065359477124e-02,
      1.796443723688307e-01, -1.39243221690590e+00};
  const double two_pi = 6.283185307179586;
  if (x == 1 || x == 2) return 0;
  long below = x <= 7 ? (long)(7 - x) : 0;
  double at = x + (double)below, inverse = 1.0 / (at * at), sum = series[9];
  for (int i = 8; i >= 0; i--) sum = sum * inverse + series[i];
  double value = sum / at + 0.5 * log(two_pi) + (at - 0.5) * log(at) - at;
  for (long i = 0; i < below; i++) {
    value -= log(at - 1.0);
    at -= 1.0;
  }
  return value;
}

/* W. Hörmann, The transformed rejection method for generating Poisson random variables, 1993,
 * algorithm PTRS. */
int64_t numba_poisson_ptrs(struct random_state *state, double mean) {
  double root = sqrt(mean), log_mean = log(mean);
  double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = next_double(state) - 0.5, v = next_double(state), us = 0.5 - fabs(u);
    int64_t k = (int64_t)floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    double drawn = log(v) + log(inverse_alpha) - log(a / (us * us) + b);
    if (drawn <= -mean + (double)k * log_mean - log_gamma((double)k + 1)) return k;
  }
}
