/* Functions of each float of a vector, for loops that an importer writes. */
#ifndef DSO_OPERATORS_ELEMENTWISE_H
#define DSO_OPERATORS_ELEMENTWISE_H

#include <math.h>

#include "image.h"

/* A function of the C library, lane by lane: of sqrt and the roundings compilers make vectors. */
#define EACH_LANE(name)                                                  \
  INLINE vec each_##name(vec x) {                                        \
    for (int lane = 0; lane < LANES; lane++) x[lane] = name##f(x[lane]); \
    return x;                                                            \
  }
EACH_LANE(sqrt)
EACH_LANE(floor)
EACH_LANE(ceil)
EACH_LANE(rint)
EACH_LANE(sin)
EACH_LANE(cos)
EACH_LANE(sinh)
EACH_LANE(cosh)
EACH_LANE(asin)
EACH_LANE(acos)
EACH_LANE(atan)
EACH_LANE(asinh)
EACH_LANE(acosh)
EACH_LANE(atanh)

INLINE vec each_pow(vec x, vec y) {
  for (int lane = 0; lane < LANES; lane++) x[lane] = powf(x[lane], y[lane]);
  return x;
}

INLINE vec each_abs(vec x) { return (vec)((mask)x & INT32_MAX); }
INLINE vec each_sigmoid(vec x) { return 1.0f / (vec_exp(-x) + 1.0f); }
INLINE vec each_tanh(vec x) { return divided(tanh_of(x)); }
INLINE vec each_sign(vec x) { return choose(x > 0, splat(1), choose(x < 0, splat(-1), x)); }

INLINE vec each_exp(vec x) { return choose(x > splat(88.72f), splat(INFINITY), vec_exp(x)); }

/* ln x: x is 2^n times a number near 1, whose logarithm is a polynomial (Cephes, logf). */
INLINE vec each_log(vec x) {
  const mask is_tiny = x < splat(0x1p-126f), is_finite = (x > 0) & (x < splat(INFINITY));
  const mask number = (mask)choose(is_tiny, x * 0x1p23f, x), half = (mask)splat(0x1.6a09e6p-1f);
  const mask power = (number - half) >> 23;
  const vec n = __builtin_convertvector(power - (is_tiny & 23), vec);
  const vec r = (vec)(number - power * (1 << 23)) - 1.0f;
  vec sum = r * 7.0376836292e-2f - 1.1514610310e-1f;
  sum = sum * r + 1.1676998740e-1f;
  sum = sum * r - 1.2420140846e-1f;
  sum = sum * r + 1.4249322787e-1f;
  sum = sum * r - 1.6668057665e-1f;
  sum = sum * r + 2.0000714765e-1f;
  sum = sum * r - 2.4999993993e-1f;
  sum = sum * r + 3.3333331174e-1f;
  sum = sum * r * (r * r) + n * -2.12194440e-4f;
  sum = n * 0.693359375f + (r + (sum - r * r * 0.5f));
  const vec special = choose(x > 0, x, choose(x == 0, splat(-INFINITY), splat(NAN)));
  return choose(is_finite, sum, special);
}

/* ln(1 + e^x): the series of the area tangent, so that small results keep their digits. */
INLINE vec each_softplus(vec x) {
  const vec power = vec_exp_below(-each_abs(x)), t = power / (power + 2.0f), s = t * t;
  vec sum = s * (1 / 15.0f) + 1 / 13.0f;
  sum = sum * s + 1 / 11.0f;
  sum = sum * s + 1 / 9.0f;
  sum = sum * s + 1 / 7.0f;
  sum = sum * s + 1 / 5.0f;
  sum = sum * s + 1 / 3.0f;
  return at_least(x, 0) + 2.0f * (t * s * sum + t);
}

/* x tanh(ln(1 + e^x)) */
INLINE vec each_mish(vec x) {
  const vec power = vec_exp(at_most(x, 20)), part = power * (power + 2.0f);
  return x * (part / (part + 2.0f));
}

/* sin x, or with 1 quarter of a turn more cos x, to 2 units in the last place: x less the nearest
 * multiple of pi / 2, whose parts have 11 bits, so that products with up to 13 bits are exact. */
INLINE vec sine(vec x, const int quarters) {
  const mask is_known = each_abs(x) <= splat(8192);
  int32_t all = -1;
  for (int lane = 0; lane < LANES; lane++) all &= is_known[lane];
  if (!all) return quarters ? each_cos(x) : each_sin(x);
  const vec shifted = x * 0.636619772f + 12582912.0f, n = shifted - 12582912.0f;
  const mask turn = (mask)shifted + quarters;
  const vec r = x - n * 0x1.92p+0f - n * 0x1.fb4p-12f - n * 0x1.444p-24f - n * 0x1.68c234p-39f;
  const vec s = r * r;
  vec odd = s * -1.9515295891e-4f + 8.3321608736e-3f;
  odd = (odd * s - 1.6666654611e-1f) * s * r + r;
  vec even = s * 2.443315711809948e-5f - 1.388731625493765e-3f;
  even = (even * s + 4.166664568298827e-2f) * (s * s) + (1.0f - s * 0.5f);
  return (vec)((mask)choose((turn & 1) != 0, even, odd) ^ (turn & 2) << 30);
}

/* The greater and the less; NaN if one of them is. */
INLINE vec each_max(vec a, vec b) { return choose((b > a) | (b != b), b, a); }
INLINE vec each_min(vec a, vec b) { return choose((b < a) | (b != b), b, a); }

#endif
