/* Tiles of low-precision elements: 8-bit integers, four of them in a word, or bfloat16, two in a word. */
#ifndef DSO_OPERATORS_LOWP_H
#define DSO_OPERATORS_LOWP_H

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "parts.h"

typedef int32_t words __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint8_t lane_bytes __attribute__((vector_size(LANES), aligned(1), may_alias));

INLINE words words_at(const void *from) { return *(const words *)from; }
INLINE void store_words(void *to, words value) { *(words *)to = value; }
/* Bytes of each lane. The compilers' own conversions take them one by one. */
#if defined(__AVX512F__)
INLINE void store_bytes(uint8_t *to, words value) {
  _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8((__m512i)value));
}
INLINE words bytes_at(const uint8_t *from) {
  return (words)_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)from));
}
INLINE words signs_at(const void *from) {
  return (words)_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from));
}
#elif defined(__AVX2__)
INLINE void store_bytes(uint8_t *to, words value) {
  const __m256i low = _mm256_and_si256((__m256i)value, _mm256_set1_epi32(255));
  const __m128i halves =
      _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64((__m128i *)(void *)to, _mm_packus_epi16(halves, halves));
}
INLINE words bytes_at(const uint8_t *from) {
  return (words)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)from));
}
INLINE words signs_at(const void *from) {
  return (words)_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from));
}
#else
typedef int8_t lane_signs __attribute__((vector_size(LANES), aligned(1), may_alias));
INLINE void store_bytes(uint8_t *to, words value) {
  *(lane_bytes *)to = __builtin_convertvector(value, lane_bytes);
}
INLINE words bytes_at(const uint8_t *from) {
  return __builtin_convertvector(*(const lane_bytes *)from, words);
}
INLINE words signs_at(const void *from) {
  return __builtin_convertvector(*(const lane_signs *)from, words);
}
#endif

/* To the nearest integer, ties to even. The instructions round so in the processor's default mode. */
INLINE words nearest(vec x) {
#if defined(__AVX512F__)
  return (words)_mm512_cvtps_epi32((__m512)x);
#elif defined(__AVX__)
  return (words)_mm256_cvtps_epi32((__m256)x);
#elif defined(__x86_64__)
  return (words)_mm_cvtps_epi32((__m128)x);
#elif defined(__aarch64__)
  return (words)vcvtnq_s32_f32((float32x4_t)x);
#else
  return __builtin_convertvector(x + 12582912.0f - 12582912.0f, words); /* 1.5 * 2^23 */
#endif
}

/* Bytes: of a word, of a block of matrix elements, and of the weights for one word of inputs. */
enum { WORD = 4, ROW_BLOCK = 32, WORD_PANEL = WORD * PANEL };

/* Rows or pixels of a tile. Without instructions for sums of low-precision products each weight is two
 * vectors. */
#if defined(__AVX512VNNI__) || (defined(__AVX512BW__) && !defined(DSO_OP_COMPILED_ONLY))
enum { LOWP_PIXELS = 14 };
#define LOWP_IS_TALL
#elif defined(__AVXVNNI__) && !defined(__AVX512F__)
enum { LOWP_PIXELS = 6 };
#else
enum { LOWP_PIXELS = 4 };
#endif

INLINE int is_bfloat16(enum dso_op_type type) { return type == DSO_OP_BFLOAT16; }
INLINE int64_t per_word(enum dso_op_type type) { return is_bfloat16(type) ? 2 : 4; }
INLINE int64_t size_of(enum dso_op_type type) {
  return type == DSO_OP_INT8 || type == DSO_OP_UINT8 ? 1 : type == DSO_OP_BFLOAT16 ? 2 : 4;
}

/* The kernels multiply a left factor of one signedness by signed weights. A factor of the other one
 * is moved by 128, and its zero with it. */
#if defined(__aarch64__)
enum { LEFT_TYPE = DSO_OP_INT8 };
#else
enum { LEFT_TYPE = DSO_OP_UINT8 };
#endif
INLINE uint8_t left_flip(enum dso_op_type type) {
  return is_bfloat16(type) || type == (enum dso_op_type)LEFT_TYPE ? 0 : 0x80;
}
INLINE uint8_t right_flip(enum dso_op_type type) { return type == DSO_OP_UINT8 ? 0x80 : 0; }

/* An element, or 0 without a pointer. */
INLINE int32_t integer_at(const void *from, enum dso_op_type type, int64_t index) {
  if (from == NULL) return 0;
  return type == DSO_OP_INT8 ? ((const int8_t *)from)[index] : ((const uint8_t *)from)[index];
}

/* The zero of a left factor as the kernels see it. */
INLINE int32_t left_zero(const void *zero, enum dso_op_type type) {
  const int32_t moved = type == DSO_OP_INT8 ? 128 : -128;
  return integer_at(zero, type, 0) + (left_flip(type) ? moved : 0);
}

/* ---- tile_lowp.c ---- */

/* As struct tile, in bytes and words: for each block of inputs, for each tap, for each word. */
struct lowp_tile {
  int64_t step;            /* to the next pixel */
  int64_t blocks;          /* of inputs */
  int64_t words, last;     /* in a block, and in the last one */
  int64_t taps[2], tap[2]; /* the window, and its distances: y, x */
  const uint8_t *weight;
  int is_bfloat16;
  int is_more; /* set by dso_op_lowp_tiles: add to the sums */
};

struct lowp_position {
  const uint8_t *data; /* of the first pixel */
  int64_t plane;       /* to the next block of inputs */
  int64_t at;          /* of its first output, in elements */
  int columns;         /* at most LOWP_PIXELS */
};

/* Integer sums become sum + added[j] + row sum * factor[j], modulo 2^32. */
struct lowp_zeros {
  uint32_t added[PANEL], factor[PANEL];
  int has_factor;
};

/* Where results are stored. */
struct lowp_place {
  const struct dso_op_rescale *after;
  enum dso_op_type type;
  void *out;
  int64_t step, plane; /* to the next pixel, and, if planar, to the next plane; in elements */
  int64_t first;       /* the number of the panel's first output */
  int64_t padded;      /* elements that are written of a pixel, with zeros at the end; 0: outputs */
  int is_planar;
  const struct lowp_zeros *zeros; /* of integers */
};

/* Compute and finish each of `count` positions, at most POSITIONS. */
DSO_OP_API void dso_op_lowp_tiles(const struct lowp_tile *tile,
                                  const struct lowp_position *positions, int count, int64_t outputs,
                                  const struct lowp_place *place);

/* ---- finish_lowp.c ---- */

DSO_OP_API void dso_op_lowp_finish(const struct lowp_place *place,
                                   const struct lowp_position *position, int64_t outputs,
                                   int32_t *sums);

/* The zeros of a panel: `column_sums` of its weights, `inner` products in a sum. The zero of b is at
 * index `first`, or at 0 with a step of 0. */
DSO_OP_API void dso_op_lowp_zeros(struct lowp_zeros *zeros, const int32_t *column_sums,
                                  int64_t inner, int32_t a_zero, const void *b_zero,
                                  int64_t b_zero_step, enum dso_op_type b_type, const int32_t *bias,
                                  int64_t first, int64_t outputs);

/* ---- pack_lowp.c ---- */

/* Rows of a matrix as a tile reads them: packed[inner / ROW_BLOCK bytes][rows][ROW_BLOCK]. Distances
 * are in elements; elements after the last one, up to a word, are 0. */
DSO_OP_API void dso_op_lowp_rows(const void *from, enum dso_op_type type, int64_t row,
                                 int64_t column, int64_t rows, int64_t inner, uint8_t *packed);

/* A panel of weights: [inner / words][PANEL][WORD], and then for integers the sum of each column. */
DSO_OP_API void dso_op_lowp_panel(const void *from, enum dso_op_type type, int64_t row,
                                  int64_t column, int64_t inner, int64_t columns, uint8_t *packed);

INLINE int64_t lowp_panel_size(enum dso_op_type type, int64_t inner) {
  return (ceil_div(inner, per_word(type)) + !is_bfloat16(type)) * WORD_PANEL;
}

#endif
