/* Depthwise convolutions of 8-bit integers: a vector is adjacent channels, each with its weight. */
#include "window_lowp.h"

/* The products of numbers of 16 bits, exact: the high halves of a are 0. */
INLINE words times(words a, words b) {
#if defined(__AVX512BW__)
  return (words)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX512F__)
  return a * b;
#elif defined(__AVX2__)
  return (words)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__x86_64__) && !defined(__AVX__)
  return (words)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
  return a * b;
#endif
}

INLINE words left_of(const uint8_t *from) {
  return left_flip(DSO_OP_INT8) ? bytes_at(from) : signs_at(from);
}

INLINE void sum_up(const struct dso_op_lowp_conv2d *conv, const uint8_t *data, int64_t step,
                   const int64_t *tap, const int8_t *weight, const int32_t *b_zeros, int32_t *sums,
                   const int pixels) {
  const words zero = words_at(b_zeros);
  words sum[4];
  UNROLL
  for (int p = 0; p < pixels; p++) sum[p] = (words){0};
  for (int64_t y = 0; y < conv->kernel[0]; y++)
    for (int64_t x = 0; x < conv->kernel[1]; x++, weight += PANEL) {
      const uint8_t *pixel = data + y * tap[0] + x * tap[1];
      const words factor = signs_at(weight) - zero;
      UNROLL
      for (int p = 0; p < pixels; p++) sum[p] += times(left_of(pixel + p * step), factor);
    }
  UNROLL
  for (int p = 0; p < pixels; p++) store_words(sums + p * PANEL, sum[p]);
}

void dso_op_lowp_depthwise(const struct dso_op_lowp_conv2d *conv, const uint8_t *data, int64_t step,
                           const int64_t *tap, const int8_t *weight, const int32_t *b_zeros,
                           int pixels, int32_t *sums) {
  for (int c = 0; c < PANEL; c += LANES) {
    int p = 0;
    for (; p + 4 <= pixels; p += 4)
      sum_up(conv, data + p * step + c, step, tap, weight + c, b_zeros + c, sums + p * PANEL + c,
             4);
    for (; p < pixels; p++)
      sum_up(conv, data + p * step + c, step, tap, weight + c, b_zeros + c, sums + p * PANEL + c,
             1);
  }
}
