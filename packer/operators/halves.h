/* Vectors of float16 and bfloat16, widened to float32. */
#ifndef DSO_OPERATORS_HALVES_H
#define DSO_OPERATORS_HALVES_H

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "dso_operators.h"
#include "vector.h"

typedef uint16_t halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

INLINE bits bits_of(const uint16_t *from) {
#if defined(__AVX512F__)
  return (bits)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif defined(__AVX2__)
  return (bits)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
  return __builtin_convertvector(*(const halves *)from, bits);
#endif
}

INLINE vec widen_float16(const uint16_t *from) {
#if defined(__AVX512F__) && defined(__F16C__)
  return (vec)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif defined(__AVX__) && defined(__F16C__)
  return (vec)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
  /* Exponents begin at -14, not at -126, and a mantissa without one counts from 2^-14. */
  const bits half = bits_of(from), value = (half & 0x7fff) << 13, least = (bits){0} + (113u << 23);
  const bits normal = value + (112u << 23), endless = normal + (112u << 23);
  const bits small = (bits)((vec)(value + least) - (vec)least);
  const bits finite = (bits)choose((mask)(value < (1u << 23)), (vec)small, (vec)normal);
  const vec found = choose((mask)(value >= (31u << 23)), (vec)endless, (vec)finite);
  return (vec)((bits)found | (half & 0x8000) << 16);
#endif
}

/* `count` elements of float16 or bfloat16, a multiple of LANES. */
INLINE void widen(const uint16_t *from, enum dso_op_type type, int64_t count, float *to) {
  if (type == DSO_OP_FLOAT16)
    for (int64_t i = 0; i < count; i += LANES) store(to + i, widen_float16(from + i));
  else
    for (int64_t i = 0; i < count; i += LANES) store(to + i, (vec)(bits_of(from + i) << 16));
}

#endif
