/* Vectors of floats, as wide as the processor's that the compiler is asked for, and the size of a
 * tile. Vectors in memory need the alignment of a float only. */
#ifndef DSO_OPERATORS_VECTOR_H
#define DSO_OPERATORS_VECTOR_H

#include <stdint.h>
#include <string.h>

/* A tile has sums for at most PIXELS pixels or rows in VECTORS vectors each: as many as there are
 * registers for, beside a weight for each vector and one pixel. */
#if defined(__AVX512F__)
enum { LANES = 16, VECTORS = 2, PIXELS = 14 };
#elif defined(__AVX__)
enum { LANES = 8, VECTORS = 2, PIXELS = 6 };
#elif defined(__aarch64__)
enum { LANES = 4, VECTORS = 4, PIXELS = 6 };
#else
enum { LANES = 4, VECTORS = 2, PIXELS = 6 };
#endif

/* Layouts in memory, the same for all processors: channels of a block, outputs of a panel. */
enum { BLOCK = 16, PANEL = 32, BLOCK_VECTORS = BLOCK / LANES };

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float plain __attribute__((vector_size(4 * LANES))); /* of the compiler's functions */
typedef int32_t mask __attribute__((vector_size(4 * LANES)));
typedef uint32_t bits __attribute__((vector_size(4 * LANES)));

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_bits __attribute__((vector_size(16)));

#define INLINE static inline __attribute__((always_inline, unused))
#define UNROLL _Pragma("GCC unroll 32")

/* X(n, ...) for each n from 1 to a number. */
#define UP_TO_3(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__)
#define UP_TO_4(X, ...) UP_TO_3(X, __VA_ARGS__) X(4, __VA_ARGS__)
#define UP_TO_6(X, ...) UP_TO_4(X, __VA_ARGS__) X(5, __VA_ARGS__) X(6, __VA_ARGS__)
#define UP_TO_7(X, ...) UP_TO_6(X, __VA_ARGS__) X(7, __VA_ARGS__)
#define UP_TO_10(X, ...) \
  UP_TO_7(X, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__)
#define UP_TO_14(X, ...)   \
  UP_TO_10(X, __VA_ARGS__) \
  X(11, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)

INLINE vec load(const float *from) { return *(const vec *)from; }
INLINE void store(float *to, vec value) { *(vec *)to = value; }
INLINE vec splat(float value) { return (vec){0} + value; }
INLINE vec choose(mask which, vec yes, vec no) {
  return (vec)((which & (mask)yes) | (~which & (mask)no));
}
/* a > b ? a : b, and a < b ? a : b. */
#if defined(__AVX512F__) && defined(__clang__)
#define X86_OF_TWO(name, a, b) __builtin_ia32_##name##ps512((plain)(a), (plain)(b), 4)
#elif defined(__AVX512F__)
#define X86_OF_TWO(name, a, b) \
  __builtin_ia32_##name##ps512_mask((plain)(a), (plain)(b), (plain)(a), -1, 4)
#elif defined(__AVX__)
#define X86_OF_TWO(name, a, b) __builtin_ia32_##name##ps256((plain)(a), (plain)(b))
#elif defined(__SSE__)
#define X86_OF_TWO(name, a, b) __builtin_ia32_##name##ps((plain)(a), (plain)(b))
#endif
#if defined(X86_OF_TWO)
INLINE vec greater(vec a, vec b) { return (vec)X86_OF_TWO(max, a, b); }
INLINE vec lesser(vec a, vec b) { return (vec)X86_OF_TWO(min, a, b); }
#else
INLINE vec greater(vec a, vec b) { return choose(a > b, a, b); }
INLINE vec lesser(vec a, vec b) { return choose(a < b, a, b); }
#endif
INLINE vec at_least(vec value, float low) { return greater(splat(low), value); }
INLINE vec at_most(vec value, float high) { return lesser(splat(high), value); }

/* A part of a vector, with `rest` in the other lanes. */
INLINE vec load_part(const float *from, int64_t count, float rest) {
  float lanes[LANES];
  for (int i = 0; i < LANES; i++) lanes[i] = rest;
  memcpy(lanes, from, (size_t)count * sizeof *from);
  return load(lanes);
}
INLINE void store_part(float *to, int64_t count, vec value) {
  float lanes[LANES];
  store(lanes, value);
  memcpy(to, lanes, (size_t)count * sizeof *to);
}

/* Four rows of four floats; the rows of `to` are the columns of `from`. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) \
  __builtin_shuffle(a, b, (int32_t __attribute__((vector_size(16)))){__VA_ARGS__})
#endif
INLINE void transpose(const float *from, int64_t row, float *to, int64_t to_row) {
  const four a = *(const four *)from, b = *(const four *)(from + row);
  const four c = *(const four *)(from + 2 * row), d = *(const four *)(from + 3 * row);
  const four low = SHUFFLE(a, b, 0, 4, 1, 5), lower = SHUFFLE(c, d, 0, 4, 1, 5);
  const four high = SHUFFLE(a, b, 2, 6, 3, 7), higher = SHUFFLE(c, d, 2, 6, 3, 7);
  *(four *)to = SHUFFLE(low, lower, 0, 1, 4, 5);
  *(four *)(to + to_row) = SHUFFLE(low, lower, 2, 3, 6, 7);
  *(four *)(to + 2 * to_row) = SHUFFLE(high, higher, 0, 1, 4, 5);
  *(four *)(to + 3 * to_row) = SHUFFLE(high, higher, 2, 3, 6, 7);
}

INLINE four folded(vec x) {
  const union {
    vec all;
    four part[LANES / 4];
  } parts = {x};
  four sum = parts.part[0];
  for (int i = 1; i < LANES / 4; i++) sum += parts.part[i];
  return sum;
}

INLINE float sum_of_lanes(vec x) {
  const four sum = folded(x);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* The sums of the lanes of four vectors. */
INLINE four four_sums(vec a, vec b, vec c, vec d) {
  const four one = folded(a), two = folded(b), three = folded(c), last = folded(d);
  const four low = SHUFFLE(one, two, 0, 4, 1, 5) + SHUFFLE(one, two, 2, 6, 3, 7);
  const four high = SHUFFLE(three, last, 0, 4, 1, 5) + SHUFFLE(three, last, 2, 6, 3, 7);
  return SHUFFLE(low, high, 0, 1, 4, 5) + SHUFFLE(low, high, 2, 3, 6, 7);
}

INLINE float greatest_lane(vec x) {
  const union {
    vec all;
    four part[LANES / 4];
  } parts = {x};
  four max_of = parts.part[0];
  for (int i = 1; i < LANES / 4; i++) {
    const four other = parts.part[i];
    const four_bits is_more = other > max_of;
    max_of = (four)((is_more & (four_bits)other) | (~is_more & (four_bits)max_of));
  }
  const float low = max_of[0] > max_of[1] ? max_of[0] : max_of[1];
  const float high = max_of[2] > max_of[3] ? max_of[2] : max_of[3];
  return low > high ? low : high;
}

/* 1 / sqrt(x) by Newton's method: sqrt would need libm. */
INLINE double inverse_root(double x) {
  if (!(x < 1e300)) return x > 0 ? 0 : x;
  uint64_t number;
  double root;
  memcpy(&number, &x, sizeof x);
  number = 0x5fe6eb50c7b537a9u - (number >> 1); /* to 4 % */
  memcpy(&root, &number, sizeof root);
  for (int i = 0; i < 4; i++) root *= 1.5 - 0.5 * x * root * root;
  return root;
}

/* e^x to 2 units in the last place; 0 below the smallest normal number, and at most e^88.72. x is
 * written as n * ln 2 + r, n rounded by the addition of a number whose last bit counts 1:
 * 1.5 * 2^23. Its bits are added to the exponent. */
INLINE vec exponential(vec x, const int is_at_most_zero) {
  const mask is_normal = x >= splat(-87.3f);
  const vec beyond = at_least(x, 0); /* 0, or NaN */
  if (!is_at_most_zero) x = at_most(x, 88.72f);
  const vec shifted = x * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
  const vec r = x - n * 0.693359375f + n * 2.12194440e-4f;
  vec sum = r * 1.38145406e-3f + 8.36874545e-3f;
  sum = sum * r + 4.16683890e-2f;
  sum = sum * r + 1.66665211e-1f;
  sum = sum * r + 4.99999940e-1f;
  sum = sum * (r * r) + (r + 1.0f);
  return choose(is_normal, (vec)((bits)sum + ((bits)shifted << 23)), beyond);
}
INLINE vec vec_exp(vec x) { return exponential(x, 0); }
INLINE vec vec_exp_below(vec x) { return exponential(x, 1); }

/* Activations are quotients, so that one division serves two of them. */
struct quotient {
  vec over, under;
};

INLINE vec divided(struct quotient a) { return a.over / a.under; }
INLINE vec product_of(struct quotient a, struct quotient b) {
  return a.over * b.over / (a.under * b.under);
}

/* tanh x is x * p(x * x) / q(x * x) to 2.1e-8 of it, fitted for 0 to 9.02, where it is 1. All terms
 * are positive: no digits cancel. */
INLINE struct quotient tanh_of(vec x) {
  x = at_most(at_least(x, -9.02f), 9.02f);
  const vec s = x * x;
  vec p = s * 1.33190527e-8f + 2.05834661e-5f;
  vec q = s * 7.76201119e-7f + 3.28309129e-4f;
  p = p * s + 3.49403360e-3f;
  q = q * s + 2.58710695e-2f;
  p = p * s + 1.33797171e-1f;
  q = q * s + 4.67130324e-1f;
  p = p * s + 1.0f;
  q = q * s + 1.0f;
  return (struct quotient){x * p, q};
}

INLINE struct quotient sigmoid_of(vec x) {
  const struct quotient half = tanh_of(x * 0.5f);
  return (struct quotient){half.under + half.over, half.under + half.under};
}

/* The error function to 2 units in the last place, after N. Juffa's for one float. */
INLINE vec vec_erf(vec x) {
  const mask sign = (mask)x & INT32_MIN,
             is_large = (vec)((mask)x & INT32_MAX) > splat(0.927734375f);
  const vec t = at_most((vec)((mask)x & INT32_MAX), 4.0f), s = t * t;
  vec large = t * -1.72853470e-5f + 3.83197126e-4f;
  large = large * s + (t * -3.88396438e-3f + 2.42546219e-2f);
  large = large * t - 1.06777877e-1f;
  large = large * t - 6.34846687e-1f;
  large = large * t - 1.28717512e-1f;
  large = 1.0f - vec_exp_below(large * t - t);
  vec small = s * -5.96761703e-4f + 4.99119423e-3f;
  small = small * s - 2.67681349e-2f;
  small = small * s + 1.12819925e-1f;
  small = small * s - 3.76125336e-1f;
  small = small * s + 1.28379166e-1f;
  small = small * t + t;
  return (vec)((mask)choose(is_large, large, small) | sign);
}

#endif
