/* Mersenne Twister (Matsumoto and Nishimura, 1998) and distributions. */
#include "functions/random_engine.h"

#include <math.h>

void engine_seed(struct random_engine *engine, uint32_t seed) {
  uint32_t *words = engine->words;
  words[0] = seed;
  for (uint32_t i = 1; i < ENGINE_WORDS; i++)
    words[i] = 1812433253U * (words[i - 1] ^ words[i - 1] >> 30) + i;
  engine->next = ENGINE_WORDS;
}

static void twist(struct random_engine *engine) {
  enum { SHIFT = 397 };
  uint32_t *words = engine->words;
  for (int i = 0; i < ENGINE_WORDS; i++) {
    uint32_t joined = (words[i] & 0x80000000U) | (words[(i + 1) % ENGINE_WORDS] & 0x7fffffffU);
    words[i] = words[(i + SHIFT) % ENGINE_WORDS] ^ joined >> 1 ^ (joined & 1 ? 0x9908b0dfU : 0);
  }
  engine->next = 0;
}

uint32_t engine_next(struct random_engine *engine) {
  if (engine->next == ENGINE_WORDS) twist(engine);
  uint32_t word = engine->words[engine->next++];
  word ^= word >> 11;
  word ^= word << 7 & 0x9d2c5680U;
  word ^= word << 15 & 0xefc60000U;
  return word ^ word >> 18;
}

/* std::generate_canonical: one word gives a float, two give a double. */
static float canonical_float(struct random_engine *engine) {
  float number = (float)engine_next(engine) / 0x1p32F;
  return number >= 1 ? nextafterf(1, 0) : number;
}

static double canonical_double(struct random_engine *engine) {
  double low = engine_next(engine);
  double number = (low + (double)engine_next(engine) * 0x1p32) / 0x1p64;
  return number >= 1 ? nextafter(1, 0) : number;
}

float engine_uniform_float(struct random_engine *engine, float low, float high) {
  return canonical_float(engine) * (high - low) + low;
}

double engine_uniform_double(struct random_engine *engine, double low, double high) {
  return canonical_double(engine) * (high - low) + low;
}

/* Marsaglia's polar method. */
float normal_next(struct normal_numbers *numbers, float mean, float deviation) {
  float x, y, square;
  if (numbers->has_kept) {
    numbers->has_kept = 0;
    return numbers->kept * deviation + mean;
  }
  do {
    x = 2 * canonical_float(numbers->engine) - 1;
    y = 2 * canonical_float(numbers->engine) - 1;
    square = x * x + y * y;
  } while (square > 1 || square == 0);
  float factor = sqrtf(-2 * logf(square) / square);
  numbers->kept = x * factor;
  numbers->has_kept = 1;
  return y * factor * deviation + mean;
}

/* The finaliser of SplitMix64. */
static uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
  value = (value ^ value >> 27) * 0x94d049bb133111ebU;
  return value ^ value >> 31;
}

uint32_t combined_seed(int64_t first, int64_t second) {
  uint64_t bits = (uint64_t)first;
  uint64_t both =
      mixed(bits) ^ (mixed((uint64_t)second) + 0x9e3779b97f4a7c15U + (bits << 6) + (bits >> 2));
  return (uint32_t)(both >> 32 ^ both);
}
