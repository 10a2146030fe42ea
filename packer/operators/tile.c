/* Sums of products for one tile: the loop in which the time of every operator is spent.
 *
 * The sums stay in registers during the loop over all inputs: a weight vector is read once for all
 * pixels, a pixel once for all vectors. Distances of pixels are constants of each kernel, so that
 * they need no registers. The kernels below are for one or two rows of pixels; for pixels that are
 * 1, 2, 16 or 32 floats apart, as they are in the layouts with strides 1 and 2, or any distance.
 * All of them can continue sums in memory, so that the inputs of a long sum are taken in parts. */
#include "parts.h"

typedef void kernel(const struct tile *tile, const struct spot *spot, const float *weight,
                    float *sums);

enum { AT_ONCE = 192 }; /* inputs: their weights and pixels stay in the nearest cache */

INLINE void sum_up(const struct tile *tile, const struct spot *spot, const float *weight,
                   float *sums, const int rows, const int columns, const int64_t step,
                   const int vectors) {
  const int64_t below = tile->below, weight_step = tile->weight_step;
  vec sum[PIXELS][VECTORS];
  UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++) sum[p][v] = splat(0);
  if (tile->is_more) UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++) sum[p][v] = load(sums + p * PANEL + v * LANES);

  for (int64_t i = 0; i < tile->blocks; i++) {
    const int64_t channels = i + 1 < tile->blocks ? tile->block : tile->last;
    const float *block = spot->data + i * spot->plane;
    for (int64_t y = 0; y < tile->taps[0]; y++)
      for (int64_t x = 0; x < tile->taps[1]; x++) {
        const float *pixel = block + y * tile->tap[0] + x * tile->tap[1];
        for (int64_t c = 0; c < channels; c++, pixel++, weight += weight_step) {
          vec factor[VECTORS];
          UNROLL
          for (int v = 0; v < vectors; v++) factor[v] = load(weight + v * LANES);
          UNROLL
          for (int p = 0; p < rows * columns; p++) UNROLL
          for (int v = 0; v < vectors; v++)
            sum[p][v] += factor[v] * pixel[p / columns * below + p % columns * step];
        }
      }
  }
  UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++) store(sums + p * PANEL + v * LANES, sum[p][v]);
}

#define KERNEL(name, rows, columns, step, vectors)                                        \
  static void name##_##rows##x##columns(const struct tile *tile, const struct spot *spot, \
                                        const float *weight, float *sums) {               \
    sum_up(tile, spot, weight, sums, rows, columns, step, vectors);                       \
  }

#define NARROW_ROWS(name, step, vectors) \
  KERNEL(name, 1, 1, step, vectors)      \
  KERNEL(name, 1, 2, step, vectors)      \
  KERNEL(name, 1, 3, step, vectors)      \
  KERNEL(name, 1, 4, step, vectors)      \
  KERNEL(name, 1, 5, step, vectors)      \
  KERNEL(name, 1, 6, step, vectors)
#define NARROW_PAIRS(name, step, vectors) \
  KERNEL(name, 2, 1, step, vectors)       \
  KERNEL(name, 2, 2, step, vectors)       \
  KERNEL(name, 2, 3, step, vectors)
#define NARROW(name) name##_1x1, name##_1x2, name##_1x3, name##_1x4, name##_1x5, name##_1x6
#define PAIRS(name) name##_2x1, name##_2x2, name##_2x3

#if defined(__AVX512F__)
#define ROWS(name, step, vectors)    \
  NARROW_ROWS(name, step, vectors)   \
  KERNEL(name, 1, 7, step, vectors)  \
  KERNEL(name, 1, 8, step, vectors)  \
  KERNEL(name, 1, 9, step, vectors)  \
  KERNEL(name, 1, 10, step, vectors) \
  KERNEL(name, 1, 11, step, vectors) \
  KERNEL(name, 1, 12, step, vectors) \
  KERNEL(name, 1, 13, step, vectors) \
  KERNEL(name, 1, 14, step, vectors)
#define TWO_ROWS(name, step, vectors) \
  NARROW_PAIRS(name, step, vectors)   \
  KERNEL(name, 2, 4, step, vectors)   \
  KERNEL(name, 2, 5, step, vectors)   \
  KERNEL(name, 2, 6, step, vectors)   \
  KERNEL(name, 2, 7, step, vectors)
#define ROW_OF(name)                                                \
  {NARROW(name), name##_1x7,  name##_1x8,  name##_1x9, name##_1x10, \
   name##_1x11,  name##_1x12, name##_1x13, name##_1x14}
#define PAIR_OF(name) {PAIRS(name), name##_2x4, name##_2x5, name##_2x6, name##_2x7}
#else
#define ROWS NARROW_ROWS
#define TWO_ROWS NARROW_PAIRS
#define ROW_OF(name) {NARROW(name)}
#define PAIR_OF(name) {PAIRS(name)}
#endif

ROWS(any, tile->step, VECTORS)
ROWS(planar, 1, VECTORS)
ROWS(planar_half, 2, VECTORS)
ROWS(blocked, 16, VECTORS)
ROWS(blocked_half, 32, VECTORS)
TWO_ROWS(any, tile->step, VECTORS)
TWO_ROWS(blocked, 16, VECTORS)
TWO_ROWS(blocked_half, 32, VECTORS)

enum { ANY, PLANAR, PLANAR_HALF, BLOCKED, BLOCKED_HALF };
static kernel *const row_kernels[][PIXELS] = {
    ROW_OF(any), ROW_OF(planar), ROW_OF(planar_half), ROW_OF(blocked), ROW_OF(blocked_half),
};
static kernel *const pair_kernels[][PIXELS / 2] = {
    PAIR_OF(any), PAIR_OF(any), PAIR_OF(any), PAIR_OF(blocked), PAIR_OF(blocked_half),
};

static void add_products(const struct tile *tile, const struct spot *spot, int64_t outputs,
                         float *sums) {
  const int64_t step = tile->step;
  const int kind = step == 16   ? BLOCKED
                   : step == 32 ? BLOCKED_HALF
                   : step == 1  ? PLANAR
                   : step == 2  ? PLANAR_HALF
                                : ANY;
  kernel *const run = spot->rows == 1 ? row_kernels[kind][spot->columns - 1]
                                      : pair_kernels[kind][spot->columns - 1];
  for (int64_t o = 0; o < outputs; o += VECTORS * LANES)
    run(tile, spot, tile->weight + o, sums + o);
}

/* Weights are read in order, panel after panel: fetch a share of those that come next. */
static void prefetch(const float *weight, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) __builtin_prefetch((const char *)weight + 4 * i, 0, 2);
}

void dso_op_tiles(const struct tile *tile, const struct spot *spots, int count, int64_t outputs,
                  float *sums) {
  const int64_t inputs = tile->block * tile->taps[0] * tile->taps[1]; /* in a block */
  const int64_t blocks = most(count > 1 ? AT_ONCE / inputs : tile->blocks, 1);
  const int64_t size = blocks * inputs * PANEL; /* of the weights that are used together */
  for (int64_t first = 0; first == 0 || first < tile->blocks; first += blocks) {
    struct tile some = *tile;
    some.is_more = first > 0;
    some.blocks = least(blocks, tile->blocks - first);
    if (first + blocks < tile->blocks) some.last = tile->block;
    some.weight += first * inputs * tile->weight_step;
    for (int i = 0; i < count; i++) {
      struct spot spot = spots[i];
      if (count > 1 && tile->weight_step == PANEL)
        prefetch(some.weight + part_begin(size, count, count + i), size / count);
      spot.data += first * spot.plane;
      add_products(&some, &spot, outputs, sums + i * PIXELS * PANEL);
    }
  }
}
