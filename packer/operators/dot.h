/* Sums of products of bytes, by words: a left factor of LEFT_TYPE, a right one of int8.
 *
 * Where the compiler may not use a processor's instruction for them, DOT_TARGET is an attribute of
 * functions that may call dot_found, and has_dot asks the processor. */
#ifndef DSO_OPERATORS_DOT_H
#define DSO_OPERATORS_DOT_H

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdatomic.h>
#endif

#include "lowp.h"

INLINE words splat_word(const void *from) {
  int32_t word;
  memcpy(&word, from, sizeof word);
  return (words){0} + word;
}

/* ---- sum + the products of four bytes in each lane ---- */

#if defined(__AVX512VNNI__)
INLINE words dot_bytes(words sum, words a, words b) {
  return (words)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}
#elif defined(__AVXVNNI__) && !defined(__AVX512F__)
INLINE words dot_bytes(words sum, words a, words b) {
  return (words)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
}
#elif defined(__x86_64__)
#if defined(DSO_OP_COMPILED_ONLY) /* a test of the other way */
#elif defined(__AVX512BW__) && (__GNUC__ >= 9 || defined(__clang__))
#define DOT_TARGET __attribute__((target("avx512vnni")))
#define DOT_IF_FOUND(sum, a, b) \
  (words) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(a), (__m512i)(b))
#define DOT_LEAF 0
#define DOT_FLAG (ecx >> 11 & 1)
#elif defined(__AVX2__) && !defined(__AVX512F__) && (__GNUC__ >= 11 || __clang_major__ >= 12)
#define DOT_TARGET __attribute__((target("avxvnni")))
#define DOT_IF_FOUND(sum, a, b) \
  (words) _mm256_dpbusd_avx_epi32((__m256i)(sum), (__m256i)(a), (__m256i)(b))
#define DOT_LEAF 1
#define DOT_FLAG (eax >> 4 & 1)
#endif

/* Pairs of 16-bit products are exact in 32 bits; pairs of 8-bit products would saturate. */
#if defined(__AVX512BW__)
typedef __m512i pairs;
#define EACH(name) _mm512_##name
#elif defined(__AVX2__)
typedef __m256i pairs;
#define EACH(name) _mm256_##name
#else
typedef __m128i pairs;
#define EACH(name) _mm_##name
#endif
INLINE words dot_bytes(words sum, words a, words b) {
#if defined(__AVX512F__) && !defined(__AVX512BW__) || defined(__AVX__) && !defined(__AVX2__)
  for (int part = 0; part < 4; part++)
    sum += (a << (24 - 8 * part) >> 24 & 255) * (b << (24 - 8 * part) >> 24);
  return sum;
#else
  const pairs even_a = (pairs)(a & 0x00ff00ff), odd_a = EACH(srli_epi16)((pairs)a, 8);
  const pairs even_b = EACH(srai_epi16)(EACH(slli_epi16)((pairs)b, 8), 8);
  const pairs odd_b = EACH(srai_epi16)((pairs)b, 8);
  return sum + (words)EACH(madd_epi16)(even_a, even_b) + (words)EACH(madd_epi16)(odd_a, odd_b);
#endif
}
#elif defined(__ARM_FEATURE_DOTPROD)
INLINE words dot_bytes(words sum, words a, words b) {
  return (words)vdotq_s32((int32x4_t)sum, (int8x16_t)a, (int8x16_t)b);
}
#elif defined(__aarch64__)
INLINE words dot_bytes(words sum, words a, words b) {
  const int8x16_t x = (int8x16_t)a, y = (int8x16_t)b;
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(x, y));
  return sum + (words)vpaddq_s32(low, high);
}
#else
INLINE words dot_bytes(words sum, words a, words b) {
  for (int part = 0; part < 4; part++)
    sum += (a << (24 - 8 * part) >> 24 & 255) * (b << (24 - 8 * part) >> 24);
  return sum;
}
#endif

#if defined(DOT_IF_FOUND)
DOT_TARGET INLINE words dot_found(words sum, words a, words b) { return DOT_IF_FOUND(sum, a, b); }

static inline int has_dot(void) {
  static _Atomic int known; /* 1: no, 2: yes */
  int found = atomic_load_explicit(&known, memory_order_relaxed);
  if (!found) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    const int is_there = __get_cpuid_count(7, DOT_LEAF, &eax, &ebx, &ecx, &edx);
    found = 1 + (is_there && DOT_FLAG);
    atomic_store_explicit(&known, found, memory_order_relaxed);
  }
  return found == 2;
}
#endif

/* Return 1 if the processor has an instruction that multiplies and adds four bytes of each lane. */
INLINE int is_dot_fast(void) {
#if defined(DOT_IF_FOUND)
  return has_dot();
#elif defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)
  return 1;
#else
  return 0;
#endif
}

#endif
