/* Sums of products for one tile: the loop in which the time of every operator is spent.
 *
 * The sums stay in registers during the loop over all inputs: a weight vector is read once for all
 * pixels, a pixel once for all vectors. Distances of pixels are constants of each kernel, so that
 * they need no registers. The kernels below are for one or two rows of pixels; for pixels that are
 * 1, 2, 16 or 32 floats apart, as they are in the layouts with strides 1 and 2, or any distance.
 * All of them can continue sums in memory, so that the inputs of a long sum are taken in parts. */
#include <string.h>

#include "finish.h"
#include "halves.h"

/* `first` is the number of an output of the panel. */
typedef void kernel(const struct tile *tile, const struct position *position, int64_t first,
                    float *sums);

enum { AT_ONCE = 192 };  /* inputs: their weights and pixels stay in the nearest cache */
enum { MOST_TAPS = 49 }; /* of weights that are halves */

/* The end of most tiles, in registers: the outputs are whole blocks, and the activation is a bound.
 * dso_op_finish does the others. */
struct ending {
  const struct place *place;
  float bias[PANEL];
  float low, high;
};

INLINE void end(const struct ending *ending, const struct position *position,
                vec sum[PIXELS][VECTORS], int64_t first, const int rows, const int columns,
                const int vectors) {
  const struct place *place = ending->place;
  const int64_t below = place->below, step = place->step, plane = place->plane;
  const int64_t at = position->at + first / BLOCK * plane + first % BLOCK;
  const float *bias = ending->bias + first;
  UNROLL
  for (int v = 0; v < vectors; v++) UNROLL
  for (int p = 0; p < rows * columns; p++) sum[p][v] += load(bias + v * LANES);
  if (place->after->residual != NULL) {
    const float *residual = place->after->residual + at;
    UNROLL
    for (int p = 0; p < rows * columns; p++) UNROLL
    for (int v = 0; v < vectors; v++)
      sum[p][v] += load(residual + p / columns * below + p % columns * step +
                        v * LANES / BLOCK * plane + v * LANES % BLOCK);
  }
  if (place->after->activation != DSO_OP_NONE) UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++)
    sum[p][v] = at_most(at_least(sum[p][v], ending->low), ending->high);
  float *out = place->out + at;
  UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++)
    store(out + p / columns * below + p % columns * step + v * LANES / BLOCK * plane +
              v * LANES % BLOCK,
          sum[p][v]);
}

INLINE void sum_up(const struct tile *tile, const struct position *position, int64_t first,
                   float *sums, const int rows, const int columns, const int64_t step,
                   const int vectors, const int has_ending) {
  const float *weight = (const float *)tile->weight + first;
  sums += first;
  const int64_t below = tile->below, weight_step = tile->weight_step;
  const int64_t next_step = tile->next_step;
  const float *next = tile->next + first;
  vec sum[PIXELS][VECTORS];
  UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++) sum[p][v] = splat(0);
  if (tile->is_more) UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++) sum[p][v] = load(sums + p * PANEL + v * LANES);

  for (int64_t i = 0; i < tile->blocks; i++) {
    const int64_t channels = i + 1 < tile->blocks ? tile->block : tile->last;
    const float *block = position->data + i * position->plane;
    weight += tile->skipped[0] * channels * weight_step;
    for (int64_t z = 0; z < tile->taps[0]; z++)
      for (int64_t y = 0; y < tile->taps[1]; y++)
        for (int64_t x = 0; x < tile->taps[2]; x++) {
          const float *soon = i + 1 < tile->blocks ? block + position->plane : position->next;
          const float *pixel = block + z * tile->tap[0] + y * tile->tap[1] + x * tile->tap[2];
          for (int64_t c = 0; c < channels; c++, pixel++, weight += weight_step) {
            __builtin_prefetch(next, 0, 2);
            __builtin_prefetch(soon);
            soon += step;
            next += next_step;
            vec factor[VECTORS];
            UNROLL
            for (int v = 0; v < vectors; v++) factor[v] = load(weight + v * LANES);
            UNROLL
            for (int p = 0; p < rows * columns; p++) UNROLL
            for (int v = 0; v < vectors; v++)
              sum[p][v] += factor[v] * pixel[p / columns * below + p % columns * step];
          }
        }
    weight += tile->skipped[1] * channels * weight_step;
  }
  if (has_ending && tile->ending != NULL) {
    end(tile->ending, position, sum, first, rows, columns, vectors);
    return;
  }
  UNROLL
  for (int p = 0; p < rows * columns; p++) UNROLL
  for (int v = 0; v < vectors; v++) store(sums + p * PANEL + v * LANES, sum[p][v]);
}

#define KERNEL(rows, columns, name, step, vectors, has_ending)                                    \
  static void name##_##rows##x##columns(const struct tile *tile, const struct position *position, \
                                        int64_t first, float *sums) {                             \
    sum_up(tile, position, first, sums, rows, columns, step, vectors, has_ending);                \
  }
#define ROW(columns, ...) KERNEL(1, columns, __VA_ARGS__)
#define PAIR(columns, ...) KERNEL(2, columns, __VA_ARGS__)
#define ROW_OF(columns, name) name##_1x##columns,
#define PAIR_OF(columns, name) name##_2x##columns,

#if defined(__AVX512F__)
#define ROWS UP_TO_14
#define PAIRS UP_TO_7
#else
#define ROWS UP_TO_6
#define PAIRS UP_TO_3
#endif

ROWS(ROW, any, tile->step, VECTORS, 0)
ROWS(ROW, planar, 1, VECTORS, 1)
ROWS(ROW, planar_half, 2, VECTORS, 1)
ROWS(ROW, blocked, 16, VECTORS, 1)
ROWS(ROW, blocked_half, 32, VECTORS, 0)
PAIRS(PAIR, any, tile->step, VECTORS, 0)
PAIRS(PAIR, blocked, 16, VECTORS, 1)
PAIRS(PAIR, blocked_half, 32, VECTORS, 0)

/* Half a panel, where the kernels above compute a whole one. */
#if defined(__AVX512F__)
ROWS(ROW, narrow, 16, 1, 1)
static kernel *const narrow_kernels[] = {ROWS(ROW_OF, narrow)};
#else
static kernel *const narrow_kernels[PIXELS];
#endif

static int is_narrow(const struct tile *tile, const struct position *position, int64_t outputs) {
  return VECTORS * LANES > BLOCK && outputs <= BLOCK && tile->step == BLOCK && position->rows == 1;
}

enum { ANY, PLANAR, PLANAR_HALF, BLOCKED, BLOCKED_HALF };
static kernel *const row_kernels[][PIXELS] = {
    {ROWS(ROW_OF, any)},     {ROWS(ROW_OF, planar)},       {ROWS(ROW_OF, planar_half)},
    {ROWS(ROW_OF, blocked)}, {ROWS(ROW_OF, blocked_half)},
};
static kernel *const pair_kernels[][PIXELS / 2] = {
    {PAIRS(PAIR_OF, any)},     {PAIRS(PAIR_OF, any)},          {PAIRS(PAIR_OF, any)},
    {PAIRS(PAIR_OF, blocked)}, {PAIRS(PAIR_OF, blocked_half)},
};

/* Return 1 if the kernel has stored the outputs. */
static int add_products(const struct tile *tile, const struct position *position, int64_t outputs,
                        float *sums) {
  const int64_t step = tile->step;
  const int kind = step == 16   ? BLOCKED
                   : step == 32 ? BLOCKED_HALF
                   : step == 1  ? PLANAR
                   : step == 2  ? PLANAR_HALF
                                : ANY;
  if (is_narrow(tile, position, outputs)) {
    narrow_kernels[position->columns - 1](tile, position, 0, sums);
    return tile->ending != NULL;
  }
  kernel *const run = position->rows == 1 ? row_kernels[kind][position->columns - 1]
                                          : pair_kernels[kind][position->columns - 1];
  for (int64_t o = 0; o < outputs; o += VECTORS * LANES) run(tile, position, o, sums);
  const int is_planar = kind == PLANAR || kind == PLANAR_HALF;
  return tile->ending != NULL && (kind == BLOCKED || (is_planar && position->rows == 1));
}

/* Return 1 if the kernels can end tiles. */
static int is_plain(const struct place *place, int64_t outputs) {
  return place != NULL && !place->is_planar && is_bounded(place->after) && outputs % BLOCK == 0;
}

static struct ending ending_of(const struct place *place, int64_t outputs) {
  const struct dso_op_after *after = place->after;
  struct ending ending = {.place = place, .low = low_of(after), .high = high_of(after)};
  if (after->bias != NULL)
    memcpy(ending.bias, after->bias + place->first, (size_t)outputs * sizeof *ending.bias);
  return ending;
}

/* `wide` is memory for the weights of a part, if they are halves. */
INLINE void run_tiles(const struct tile *tile, const struct position *positions, int count,
                      int64_t outputs, float *sums, const struct place *place, float *wide) {
  const int64_t taps = tile->taps[0] * tile->taps[1] * tile->taps[2];
  const int64_t inputs =
      tile->block * (taps + tile->skipped[0] + tile->skipped[1]); /* in a block */
  const int is_half = wide != NULL;
  const int64_t parts = count > 1 || is_half ? ceil_div(tile->blocks, max(AT_ONCE / inputs, 1)) : 1;
  const int64_t blocks = max(ceil_div(tile->blocks, max(parts, 1)), 1);
  const int64_t size = blocks * inputs * PANEL; /* of the weights that are used together */
  struct tile some = *tile;
  some.next_step = count > 1 && tile->weight_step == PANEL && !is_half ? PANEL / count : 0;
  struct ending ending;
  const int has_ending = is_plain(place, outputs);
  if (has_ending) ending = ending_of(place, outputs);
  for (int64_t first = 0; first == 0 || first < tile->blocks; first += blocks) {
    const int is_last = first + blocks >= tile->blocks;
    some.is_more = first > 0;
    some.blocks = min(blocks, tile->blocks - first);
    some.last = is_last ? tile->last : tile->block;
    const int64_t at = first * inputs * tile->weight_step;
    some.weight = (const float *)tile->weight + at;
    if (is_half) {
      const int64_t channels = (some.blocks - 1) * tile->block + some.last;
      const uint16_t *from = (const uint16_t *)tile->weight + at;
      widen(from, tile->type, channels * (inputs / tile->block) * PANEL, wide);
      some.weight = wide;
    }
    for (int i = 0; i < count; i++) {
      struct position position = positions[i];
      float *of_position = sums + (parts > 1 ? i * PIXELS * PANEL : 0);
      some.next = (const float *)some.weight + (is_half ? 0 : part_begin(size, count, count + i));
      const int is_whole = outputs % (VECTORS * LANES) == 0 || is_narrow(tile, &position, outputs);
      some.ending = is_last && has_ending && is_whole ? &ending : NULL;
      position.next =
          i + 1 < count ? positions[i + 1].data + first * position.plane : position.data;
      position.data += first * position.plane;
      if (!add_products(&some, &position, outputs, of_position) && is_last && place != NULL)
        dso_op_finish(place, &position, outputs, of_position);
    }
  }
}

__attribute__((noinline)) static void tiles_of_halves(const struct tile *tile,
                                                      const struct position *positions, int count,
                                                      int64_t outputs, float *sums,
                                                      const struct place *place) {
  _Alignas(64) float wide[BLOCK * MOST_TAPS * PANEL];
  run_tiles(tile, positions, count, outputs, sums, place, wide);
}

void dso_op_tiles(const struct tile *tile, const struct position *positions, int count,
                  int64_t outputs, float *sums, const struct place *place) {
  if (tile->type == DSO_OP_FLOAT32) run_tiles(tile, positions, count, outputs, sums, place, NULL);
  else tiles_of_halves(tile, positions, count, outputs, sums, place);
}
