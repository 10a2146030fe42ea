/* Functions of each float of a vector, for loops that an importer writes. */
#ifndef DSO_OPERATORS_ELEMENTWISE_H
#define DSO_OPERATORS_ELEMENTWISE_H

#include <math.h>

#include "image.h"

/* A function of the C library, lane by lane. */
#define EACH_LANE(name, function)                                         \
  INLINE vec name(vec x) {                                                \
    for (int lane = 0; lane < LANES; lane++) x[lane] = function(x[lane]); \
    return x;                                                             \
  }
EACH_LANE(each_sqrt, sqrtf)
EACH_LANE(each_log, logf)
EACH_LANE(each_floor, floorf)
EACH_LANE(each_ceil, ceilf)
EACH_LANE(each_sin, sinf)
EACH_LANE(each_cos, cosf)

INLINE vec each_pow(vec x, vec y) {
  for (int lane = 0; lane < LANES; lane++) x[lane] = powf(x[lane], y[lane]);
  return x;
}

INLINE vec each_exp(vec x) { return choose(x > splat(88.72f), splat(INFINITY), vec_exp(x)); }
INLINE vec each_sigmoid(vec x) { return 1.0f / (vec_exp(-x) + 1.0f); }
INLINE vec each_abs(vec x) { return (vec)((mask)x & INT32_MAX); }

/* Near 0 the series, since the quotient loses digits there. */
INLINE vec each_tanh(vec x) {
  const vec s = x * x;
  vec small = s * 3.592128037e-3f - 8.863235530e-3f;
  small = small * s + 2.186948854e-2f;
  small = small * s - 5.396825397e-2f;
  small = small * s + 1.333333333e-1f;
  small = small * s - 3.333333333e-1f;
  small = small * s * x + x;
  return choose(s < splat(0.2025f), small, 1.0f - 2.0f / (vec_exp(x + x) + 1.0f));
}

/* The greater and the less; NaN if one of them is. */
INLINE vec each_max(vec a, vec b) { return choose((b > a) | (b != b), b, a); }
INLINE vec each_min(vec a, vec b) { return choose((b < a) | (b != b), b, a); }

#endif
