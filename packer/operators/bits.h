/* Weights of 4 and 8 bits as their kernels read them, and rows of a as integers. */
#ifndef DSO_OPERATORS_BITS_H
#define DSO_OPERATORS_BITS_H

#include "parts.h"

enum { LEAST_BLOCK = 16, MOST_BLOCK = 256, MOST_DIGITS = 3, COLUMN_VECTORS = PANEL / LANES };

/* In words: a line of the cache, and how far ahead one row's weight is requested. */
enum { LINE = 16, AHEAD = 1536 };

/* A block of a weight's panel: rows of PANEL words, first scales, then zeros if there are any. */
INLINE int64_t words_before(const struct dso_op_matmul_bits *product) {
  return PANEL * (product->has_zeros ? 2 : 1);
}
INLINE int64_t words_of_block(const struct dso_op_matmul_bits *product) {
  return words_before(product) + product->block * product->bits / 32 * PANEL;
}
INLINE int64_t blocks_of(const struct dso_op_matmul_bits *product) {
  return ceil_div(product->inner, product->block);
}
INLINE vec load_words(const uint32_t *from) {
  vec floats;
  memcpy(&floats, from, sizeof floats);
  return floats;
}

/* ---- matmul_bits_rows.c: sums of integers ----
 *
 * An input is an integer of some bytes, its digits, times a scale of its block. */

/* The digits of each input: 1 for activations of 8 bits; 3, as exact as a float32 beside the
 * greatest of its block, for one row, if the processor multiplies bytes; 0: not with integers. */
DSO_OP_API int dso_op_bits_digits(const struct dso_op_matmul_bits *product);

/* The bytes of a row of a. */
DSO_OP_API int64_t dso_op_bits_row(const struct dso_op_matmul_bits *product, int digits);

/* Write one row as integers; return 0 if it has an infinity or a NaN, whose products are NaN. */
DSO_OP_API int dso_op_bits_round(const struct dso_op_matmul_bits *product, int digits,
                                 const float *a, void *to);

/* Multiply `count` rows, at most BITS_ROWS, by a panel: sums[count][PANEL]. */
enum { BITS_ROWS = LANES >= 16 ? 4 : 2 };
DSO_OP_API void dso_op_bits_multiply(const struct dso_op_matmul_bits *product, int digits,
                                     const void *rows, int count, const uint32_t *panel,
                                     float *sums);

#endif
