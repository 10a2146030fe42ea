/* Rows of a as integers, and their products with a weight of integers.
 *
 * The instructions for sums of bytes multiply unsigned by signed ones: so the weight is moved by half of
 * its range, and each sum starts with what that adds. */
#include "bits.h"
#include "dot.h"

/* The most that an integer of some digits may be; of three, a float32 has it exactly. */
enum { TOP = 127, TOP_OF_THREE = 8000000 };
static const float LEAST = 0x1p-100f; /* the greatest of a block below is 0 */

enum { IS_MOVED = LEFT_TYPE == (int)DSO_OP_UINT8 }; /* a weight of 8 bits */

/* Before the bytes of a block: [digits][block]. */
struct factor {
  float scale, sum; /* of all inputs */
  int32_t start[MOST_DIGITS], unused[3];
};

INLINE const struct factor *factor_at(const char *row) {
  return (const struct factor *)(const void *)row;
}

int dso_op_bits_digits(const struct dso_op_matmul_bits *product) {
  if (product->activation_bits) return 1;
  return product->rows == 1 && is_dot_fast() ? MOST_DIGITS : 0;
}

int64_t dso_op_bits_row(const struct dso_op_matmul_bits *product, int digits) {
  return blocks_of(product) * ((int64_t)sizeof(struct factor) + digits * product->block);
}

/* ---- Rounding */

/* The greatest magnitude; an infinity or a NaN is greater than all numbers. */
static uint32_t greatest_of(const float *a, int64_t count) {
  mask most = {0};
  for (int64_t k = 0; k < count; k += LANES) {
    const mask magnitude = (mask)load(a + k) & INT32_MAX, is_more = magnitude > most;
    most = (is_more & magnitude) | (~is_more & most);
  }
  int32_t found = 0;
  for (int lane = 0; lane < LANES; lane++) found = most[lane] > found ? most[lane] : found;
  return (uint32_t)found;
}

static int32_t sum_of_words(words sum) {
  int32_t total = 0;
  for (int lane = 0; lane < LANES; lane++) total += sum[lane];
  return total;
}

INLINE void round_block(const float *a, int64_t block, int32_t offset, char *to, const int digits) {
  const uint32_t most = greatest_of(a, block);
  struct factor *factor = (struct factor *)(void *)to;
  uint8_t *bytes = (uint8_t *)to + sizeof *factor;
  const float top = digits > 1 ? TOP_OF_THREE : TOP;
  float greatest, inverse = 0;
  memcpy(&greatest, &most, sizeof greatest);
  if (greatest >= LEAST) inverse = top / greatest;
  words sums[MOST_DIGITS] = {{0}};
  for (int64_t k = 0; k < block; k += LANES) {
    words rest = nearest(load(a + k) * inverse);
    UNROLL
    for (int d = 0; d < digits; d++) {
      const words digit = rest << 24 >> 24;
      store_bytes(bytes + d * block + k, digit);
      sums[d] += digit;
      rest = (rest - digit) >> 8;
    }
  }
  factor->scale = inverse > 0 ? greatest / top : 0;
  if (most >= 0x7f800000) factor->scale = greatest - greatest; /* a NaN */
  factor->sum = 0;
  for (int d = digits; d-- > 0;) {
    const int32_t sum = sum_of_words(sums[d]);
    factor->start[d] = -offset * sum;
    factor->sum = factor->sum * 256 + (float)sum;
  }
}

int dso_op_bits_round(const struct dso_op_matmul_bits *product, int digits, const float *a,
                      void *to) {
  const int64_t block = product->block, inner = product->inner;
  const int32_t offset = product->bits == 4 ? 8 : IS_MOVED ? 128 : 0;
  char *at = to;
  int is_finite = 1;
  for (int64_t k = 0; k < inner; k += block) {
    const float *from = a + k;
    float last[MOST_BLOCK];
    if (k + block > inner) {
      memset(last, 0, sizeof last);
      memcpy(last, from, (size_t)(inner - k) * sizeof *from);
      from = last;
    }
    if (digits > 1) round_block(from, block, offset, at, MOST_DIGITS);
    else round_block(from, block, offset, at, 1);
    const float scale = factor_at(at)->scale;
    is_finite &= scale == scale;
    at += (int64_t)sizeof(struct factor) + digits * block;
  }
  return is_finite;
}

/* ---- Products */

INLINE int32_t flip_of(const int width) {
  if (width == 4) return (int32_t)0x88888888u;
  return IS_MOVED ? (int32_t)0x80808080u : 0;
}

/* The bytes of a part of each word: of 4 bits the low halves are the first four inputs. */
INLINE words bytes_of(words word, const int part, const int width) {
  if (width == 8) return word;
  return (part ? word >> 4 : word) & 0x0f0f0f0f;
}

/* Keep the compiler from adding before it rounds. */
INLINE vec rounded(vec product) {
  plain value = product;
#if defined(__AVX512F__)
  __asm__("" : "+v"(value));
#elif defined(__x86_64__)
  __asm__("" : "+x"(value));
#elif defined(__aarch64__)
  __asm__("" : "+w"(value));
#else
  __asm__("" : "+m"(value));
#endif
  return value;
}

INLINE vec floats_of(words integers) { return __builtin_convertvector(integers, plain); }

/* The sum of a block: with one digit all but the two products by scales are exact. */
INLINE vec scaled(words parts[MOST_DIGITS][VECTORS], const int v, const int digits,
                  const struct factor *factor, const uint32_t *panel, const int has_zeros) {
  vec sum = floats_of(parts[0][v]);
  if (digits > 1) sum += floats_of(parts[1][v]) * 256.0f + floats_of(parts[2][v]) * 65536.0f;
  if (has_zeros) sum -= load_words(panel + PANEL) * factor->sum;
  return rounded(sum * factor->scale * load_words(panel));
}

#define TARGET
#define DOT dot_bytes
#define MULTIPLY multiply
#define NAME multiply_rows
#include "kernels_bits.h"
#undef TARGET
#undef DOT
#undef MULTIPLY
#undef NAME

#if defined(DOT_IF_FOUND)
#define TARGET DOT_TARGET
#define DOT dot_found
#define MULTIPLY found_multiply
#define NAME found_multiply_rows
#include "kernels_bits.h"
#endif

void dso_op_bits_multiply(const struct dso_op_matmul_bits *product, int digits, const void *rows,
                          int count, const uint32_t *panel, float *sums) {
#if defined(DOT_IF_FOUND)
  if (has_dot()) {
    found_multiply_rows(product, digits, rows, count, panel, sums);
    return;
  }
#endif
  multiply_rows(product, digits, rows, count, panel, sums);
}
