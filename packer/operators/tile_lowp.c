/* Sums of products of low-precision elements for one tile, by words: a word of inputs times a word of each
 * weight in a vector is added to 32-bit sums. */
#include "dot.h"

enum { BLOCKS_AT_ONCE = 24 }; /* of ROW_BLOCK bytes: their weights stay in the nearest cache */

/* ---- sum + the products of two bfloat16 in each lane ---- */

#if defined(__AVX512BF16__)
INLINE words dot_bfloat16(words sum, words a, words b) {
  return (words)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
#else
INLINE words dot_bfloat16(words sum, words a, words b) {
  const words high = {0};
  vec found = (vec)sum;
  found += (vec)((bits)a << 16) * (vec)((bits)b << 16);
  found += (vec)(a & (high + INT32_C(-65536))) * (vec)(b & (high + INT32_C(-65536)));
  return (words)found;
}
#endif

/* ---- Kernels ---- */

typedef void kernel(const struct lowp_tile *tile, const struct lowp_position *position,
                    int64_t first, int32_t *sums);

#define KERNEL(columns, name, step, is_bfloat16)                                           \
  TARGET static void name##_##columns(const struct lowp_tile *tile,                        \
                                      const struct lowp_position *position, int64_t first, \
                                      int32_t *sums) {                                     \
    SUM_UP(tile, position, first, sums, columns, step, is_bfloat16);                       \
  }
#define KERNEL_OF(columns, name) name##_##columns,
#if defined(LOWP_IS_TALL)
#define COLUMNS UP_TO_14
#elif defined(__AVXVNNI__) && !defined(__AVX512F__)
#define COLUMNS UP_TO_6
#else
#define COLUMNS UP_TO_4
#endif
#define KERNELS(name, step, is_bfloat16)   \
  COLUMNS(KERNEL, name, step, is_bfloat16) \
  static kernel *const name[] = {COLUMNS(KERNEL_OF, name)};

#define TARGET
#define DOT dot_bytes
#define SUM_UP sum_up
#include "kernels_lowp.h"
KERNELS(bytes, ROW_BLOCK, 0)
KERNELS(bytes_apart, tile->step, 0)
KERNELS(rounded, ROW_BLOCK, 1)
#undef TARGET
#undef DOT
#undef SUM_UP

/* Where the compiler may not use a processor's sums of products, the processor is asked. */
#if defined(DOT_IF_FOUND)
#define TARGET DOT_TARGET
#define DOT dot_found
#define SUM_UP found_sum_up
#include "kernels_lowp.h"
KERNELS(found_bytes, ROW_BLOCK, 0)
KERNELS(found_bytes_apart, tile->step, 0)
#endif

static kernel *const *kernels_of(const struct lowp_tile *tile) {
  if (tile->is_bfloat16) return rounded;
#if defined(DOT_IF_FOUND)
  if (has_dot()) return tile->step == ROW_BLOCK ? found_bytes : found_bytes_apart;
#endif
  return tile->step == ROW_BLOCK ? bytes : bytes_apart;
}

/* ---- Tiles ---- */

/* The sum of all bytes that a pixel's window has. */
static uint32_t row_sum(const struct lowp_tile *tile, const uint8_t *data, int64_t plane) {
  const words ones = (words){0} + 0x01010101;
  words sum = {0};
  for (int64_t i = 0; i < tile->blocks; i++, data += plane)
    for (int64_t tap = 0; tap < tile->taps[0] * tile->taps[1]; tap++) {
      const uint8_t *from =
          data + tap / tile->taps[1] * tile->tap[0] + tap % tile->taps[1] * tile->tap[1];
      int64_t left = (i + 1 < tile->blocks ? tile->words : tile->last);
      for (; left >= LANES; left -= LANES, from += LANES * WORD)
        sum = dot_bytes(sum, words_at(from), ones);
      words rest = {0};
      memcpy(&rest, from, (size_t)(left * WORD));
      sum = dot_bytes(sum, rest, ones);
    }
  uint32_t all = 0;
  for (int lane = 0; lane < LANES; lane++) all += (uint32_t)sum[lane];
  return all;
}

static void add_row_terms(const struct lowp_tile *tile, const struct lowp_position *position,
                          const struct lowp_zeros *zeros, int32_t *sums) {
  for (int p = 0; p < position->columns; p++, sums += PANEL) {
    const uint32_t row = row_sum(tile, position->data + p * tile->step, position->plane);
    for (int j = 0; j < PANEL; j++) sums[j] = (int32_t)((uint32_t)sums[j] + row * zeros->factor[j]);
  }
}

void dso_op_lowp_tiles(const struct lowp_tile *tile, const struct lowp_position *positions,
                       int count, int64_t outputs, const struct lowp_place *place) {
  _Alignas(64) int32_t sums[POSITIONS * LOWP_PIXELS * PANEL];
  const int64_t taps = tile->taps[0] * tile->taps[1], size = tile->words * taps; /* of a block */
  const int64_t max_words = BLOCKS_AT_ONCE * ROW_BLOCK / WORD;
  const int64_t parts = count > 1 ? ceil_div(tile->blocks, max(max_words / max(size, 1), 1)) : 1;
  const int64_t blocks = max(ceil_div(tile->blocks, max(parts, 1)), 1);
  kernel *const *kernels = kernels_of(tile);
  struct lowp_tile some = *tile;
  for (int64_t first = 0; first == 0 || first < tile->blocks; first += blocks) {
    const int is_last = first + blocks >= tile->blocks;
    some.is_more = first > 0;
    some.blocks = min(blocks, tile->blocks - first);
    some.last = is_last ? tile->last : tile->words;
    some.weight = tile->weight + first * size * WORD_PANEL;
    for (int i = 0; i < count; i++) {
      struct lowp_position position = positions[i];
      int32_t *of_position = sums + (parts > 1 ? i * LOWP_PIXELS * PANEL : 0);
      position.data += first * position.plane;
      for (int64_t o = 0; o < outputs; o += VECTORS * LANES)
        kernels[position.columns - 1](&some, &position, o, of_position);
      if (!is_last) continue;
      if (place->zeros != NULL && place->zeros->has_factor)
        add_row_terms(tile, &positions[i], place->zeros, of_position);
      dso_op_lowp_finish(place, &position, outputs, of_position);
    }
  }
}
