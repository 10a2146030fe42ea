/* The generator and the distributions of TVM's random functions: std::mt19937 and libstdc++'s
 * uniform_real_distribution and normal_distribution, with the same numbers for a seed. */
#pragma once

#include <stdint.h>

enum { ENGINE_WORDS = 624 };

struct random_engine {
  uint32_t words[ENGINE_WORDS];
  int next;
};

void engine_seed(struct random_engine *engine, uint32_t seed);
uint32_t engine_next(struct random_engine *engine);

/* A number in [low, high). */
float engine_uniform_float(struct random_engine *engine, float low, float high);
double engine_uniform_double(struct random_engine *engine, double low, double high);

/* Normal numbers come in pairs: the second of each pair is kept. */
struct normal_numbers {
  struct random_engine *engine;
  float kept;
  int has_kept;
};
float normal_next(struct normal_numbers *numbers, float mean, float deviation);

/* One seed from two, as TVM mixes them. */
uint32_t combined_seed(int64_t first, int64_t second);
