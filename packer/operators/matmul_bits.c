/* Products with a weight of 4 or 8 bits, whose blocks of inputs share a scale for each column.
 *
 * A word has the adjacent inputs of one column. One row is multiplied by the integers, so that the
 * weight is read once and from memory; more rows by a part of the weight in float32. Rows of
 * integers are multiplied by integers (matmul_bits_rows.c), as is one row of finite floats where
 * the processor has the instructions. */
#include <string.h>

#include "bits.h"

enum { CHAINS = LANES >= 8 ? 2 : 1 }; /* of sums: a sum waits for the one before it */
enum { MOST_TILES = 256 / PIXELS };   /* of rows whose sums are on the stack */

struct plan {
  const struct dso_op_matmul_bits *product;
  int64_t panels, blocks, block_words, tiles;
  int digits; /* of inputs, in the workspace; 0: floats */
};

static struct plan plan_of(const struct dso_op_matmul_bits *product) {
  struct plan plan = {.product = product};
  plan.panels = ceil_div(product->columns, PANEL);
  plan.blocks = blocks_of(product);
  plan.block_words = words_of_block(product);
  plan.tiles = ceil_div(product->rows, PIXELS);
  plan.digits = dso_op_bits_digits(product);
  return plan;
}

int64_t dso_op_matmul_bits_workspace(const struct dso_op_matmul_bits *product) {
  const struct plan plan = plan_of(product);
  return plan.digits ? product->rows * dso_op_bits_row(product, plan.digits) / 4 : 0;
}

/* Input `i` of each word, a signed integer. */
INLINE vec part_of(bits words, const int i, const int width) {
  const int first = width == 4 ? 8 * (i % 4) + 4 * (i / 4) : 8 * i; /* its lowest bit */
#if defined(__AVX512F__)
  static const float values[16] = {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1};
  if (width == 4) {
    const bits index = words >> first;
#if defined(__clang__)
    return (vec)__builtin_ia32_permvarsf512((plain)load(values), (mask)index);
#else
    return (vec)__builtin_shuffle((plain)load(values), (mask)index);
#endif
  }
#endif
  const mask number = (mask)(words << (32 - width - first)) >> (32 - width);
  return __builtin_convertvector(number, plain);
}

INLINE bits load_bits(const uint32_t *from) { return (bits)load_words(from); }

/* The numbers in a word; not a quotient, which sanitizers would check in unrolled loops. */
INLINE int in_word(const int width) { return width == 4 ? 8 : 4; }

/* Add the products of one row with a block to the sums of a panel. */
INLINE void multiply_block(const struct dso_op_matmul_bits *product, const uint32_t *block,
                           const float *a, vec *sums, const int width) {
  vec parts[CHAINS][COLUMN_VECTORS];
  const int64_t count = product->block;
  const uint32_t *words = block + words_before(product);
  UNROLL
  for (int c = 0; c < CHAINS; c++) UNROLL
  for (int v = 0; v < COLUMN_VECTORS; v++) parts[c][v] = splat(0);
  for (int64_t k = 0; k < count; k += in_word(width), words += PANEL) {
    bits word[COLUMN_VECTORS];
    UNROLL
    for (int v = 0; v < COLUMN_VECTORS; v++) word[v] = load_bits(words + v * LANES);
    UNROLL
    for (int i = 0; i < in_word(width); i++) UNROLL
    for (int v = 0; v < COLUMN_VECTORS; v++)
      parts[i % CHAINS][v] += splat(a[k + i]) * part_of(word[v], i, width);
  }
  vec all = splat(0);
  if (product->has_zeros)
    for (int64_t k = 0; k < count; k += LANES) all += load(a + k);
  const float total = product->has_zeros ? sum_of_lanes(all) : 0;
  UNROLL
  for (int v = 0; v < COLUMN_VECTORS; v++) {
    vec sum = parts[0][v];
    if (CHAINS > 1) sum += parts[CHAINS - 1][v];
    if (product->has_zeros) sum -= load_words(block + PANEL + v * LANES) * total;
    sums[v] += sum * load_words(block + v * LANES);
  }
}

INLINE void multiply_panel(const struct plan *plan, const uint32_t *panel, float *to,
                           const int width) {
  const struct dso_op_matmul_bits *product = plan->product;
  const int64_t block = product->block;
  vec sums[COLUMN_VECTORS];
  UNROLL
  for (int v = 0; v < COLUMN_VECTORS; v++) sums[v] = splat(0);
  for (int64_t b = 0; b < plan->blocks; b++, panel += plan->block_words) {
    const float *a = product->a + b * block;
    float last[MOST_BLOCK];
    if ((b + 1) * block > product->inner) { /* the weight has zeros there */
      memset(last, 0, sizeof last);
      memcpy(last, a, (size_t)(product->inner - b * block) * sizeof *a);
      a = last;
    }
    multiply_block(product, panel, a, sums, width);
  }
  UNROLL
  for (int v = 0; v < COLUMN_VECTORS; v++) store(to + v * LANES, sums[v]);
}

/* Write a block as float32: [input][PANEL]. */
INLINE void unpack_block(const struct dso_op_matmul_bits *product, const uint32_t *block, float *to,
                         const int width) {
  const uint32_t *words = block + words_before(product);
  for (int64_t k = 0; k < product->block; k += in_word(width), words += PANEL) UNROLL
  for (int v = 0; v < COLUMN_VECTORS; v++) {
    const bits word = load_bits(words + v * LANES);
    const vec scale = load_words(block + v * LANES);
    const vec zero = product->has_zeros ? load_words(block + PANEL + v * LANES) : splat(0);
    UNROLL
    for (int i = 0; i < in_word(width); i++)
      store(to + (k + i) * PANEL + v * LANES, (part_of(word, i, width) - zero) * scale);
  }
}

void dso_op_matmul_bits_column(const struct dso_op_matmul_bits *product, int64_t column,
                               float *out) {
  const int64_t block = product->block, step = words_of_block(product);
  const int width = product->bits, lane = (int)(column % PANEL);
  const uint32_t *at =
      (const uint32_t *)product->b + column / PANEL * blocks_of(product) * step + lane;
  for (int64_t k = 0; k < product->inner; k += block, at += step) {
    float scale, zero = 0;
    memcpy(&scale, at, sizeof scale);
    if (product->has_zeros) memcpy(&zero, at + PANEL, sizeof zero);
    const uint32_t *words = at + words_before(product);
    const int64_t count = min(block, product->inner - k);
    for (int64_t i = 0; i < count; i++) {
      const uint32_t word = words[i / (32 / width) * PANEL];
      const int part = (int)(i % (32 / width));
      const int first = width == 4 ? 8 * (part % 4) + 4 * (part / 4) : 8 * part;
      const int32_t number = (int32_t)(word << (32 - width - first)) >> (32 - width);
      out[k + i] = ((float)number - zero) * scale;
    }
  }
}

static struct position tile_of(const struct plan *plan, int64_t tile, int64_t column) {
  const struct dso_op_matmul_bits *product = plan->product;
  const int64_t row = part_begin(product->rows, plan->tiles, tile);
  const int64_t end = part_begin(product->rows, plan->tiles, tile + 1);
  return (struct position){.data = product->a + row * product->a_row,
                           .plane = BLOCK,
                           .at = row * product->out_row + column,
                           .rows = 1,
                           .columns = (int)(end - row)};
}

/* Tiles of rows, and their sums for a panel. */
struct group {
  int64_t tile, end;
  float *sums;
};

/* Add the products of rows with some blocks, in float32, to their sums. */
static void multiply_some(const struct plan *plan, const struct group *group, const float *weight,
                          int64_t first, int64_t inputs) {
  _Alignas(64) float some[PIXELS * PANEL];
  const int64_t blocks = ceil_div(inputs, BLOCK);
  const struct tile tile = {.step = plan->product->a_row,
                            .blocks = blocks,
                            .block = BLOCK,
                            .last = inputs - (blocks - 1) * BLOCK,
                            .taps = {1, 1, 1},
                            .weight = weight,
                            .weight_step = PANEL};
  float *sums = group->sums;
  for (int64_t t = group->tile; t < group->end; t++) {
    struct position position = tile_of(plan, t, 0);
    position.data += first;
    dso_op_tiles(&tile, &position, 1, PANEL, some, NULL);
    for (int64_t i = 0; i < position.columns * PANEL; i += LANES)
      store(sums + i, load(sums + i) + load(some + i));
    sums += position.columns * PANEL;
  }
}

static void multiply_rows(const struct plan *plan, const struct group *group,
                          const uint32_t *panel) {
  const struct dso_op_matmul_bits *product = plan->product;
  const int64_t block = product->block, together = max(MOST_BLOCK / block, 1);
  _Alignas(64) float weight[MOST_BLOCK * PANEL];
  const int64_t rows = part_begin(product->rows, plan->tiles, group->end) -
                       part_begin(product->rows, plan->tiles, group->tile);
  memset(group->sums, 0, (size_t)(rows * PANEL) * sizeof *group->sums);
  for (int64_t b = 0; b < plan->blocks; b += together) {
    const int64_t end = min(b + together, plan->blocks), first = b * block;
    for (int64_t i = b; i < end; i++, panel += plan->block_words)
      if (product->bits == 4) unpack_block(product, panel, weight + (i - b) * block * PANEL, 4);
      else unpack_block(product, panel, weight + (i - b) * block * PANEL, 8);
    multiply_some(plan, group, weight, first, min(end * block, product->inner) - first);
  }
}

/* One item: a row of integers. */
static void round_row(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_matmul_bits *product = plan->product;
  char *rows = (char *)product->workspace + index * dso_op_bits_row(product, plan->digits);
  (void)dso_op_bits_round(product, plan->digits, product->a + index * product->a_row, rows);
}

static const uint32_t *panel_of(const struct plan *plan, int64_t index) {
  return (const uint32_t *)plan->product->b + index * plan->blocks * plan->block_words;
}

/* One item: a panel of columns, for all rows of integers. */
static void multiply_integers(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_matmul_bits *product = plan->product;
  const int64_t column = index * PANEL, columns = min(product->columns - column, PANEL);
  const struct place place = {.after = &product->after,
                              .out = product->out,
                              .step = product->out_row,
                              .plane = BLOCK,
                              .first = column};
  const char *rows = (const char *)product->workspace;
  _Alignas(64) float sums[BITS_ROWS * PANEL];
  for (int64_t row = 0; row < product->rows; row += BITS_ROWS) {
    const int count = (int)min(product->rows - row, BITS_ROWS);
    const struct position position = {
        .at = row * product->out_row + column, .rows = 1, .columns = count};
    dso_op_bits_multiply(product, plan->digits, rows, count, panel_of(plan, index), sums);
    dso_op_finish(&place, &position, columns, sums);
    rows += count * dso_op_bits_row(product, plan->digits);
  }
}

/* One item: a panel of columns, for all rows. */
static void multiply(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_matmul_bits *product = plan->product;
  const uint32_t *panel = panel_of(plan, index);
  const int64_t column = index * PANEL, columns = min(product->columns - column, PANEL);
  const struct place place = {.after = &product->after,
                              .out = product->out,
                              .step = product->out_row,
                              .plane = BLOCK,
                              .first = column};
  _Alignas(64) float sums[MOST_TILES * PIXELS * PANEL];
  for (int64_t tile = 0; tile < plan->tiles; tile += MOST_TILES) {
    const struct group group = {tile, min(tile + MOST_TILES, plan->tiles), sums};
    if (product->rows > 1) multiply_rows(plan, &group, panel);
    else if (product->bits == 4) multiply_panel(plan, panel, sums, 4);
    else multiply_panel(plan, panel, sums, 8);
    float *next = sums;
    for (int64_t t = tile; t < group.end; t++) {
      const struct position position = tile_of(plan, t, column);
      dso_op_finish(&place, &position, columns, next);
      next += position.columns * PANEL;
    }
  }
}

int dso_op_matmul_bits(const struct dso_op_matmul_bits *product) {
  struct plan plan = plan_of(product);
  const int64_t work = product->rows * product->inner * product->columns;
  if (product->rows < 1 || product->columns < 1) return 0;
  if (plan.digits > 1 && !dso_op_bits_round(product, plan.digits, product->a, product->workspace))
    plan.digits = 0;
  if (plan.digits == 1 &&
      dso_op_parallel(round_row, &plan, product->rows, product->rows * product->inner))
    return -1;
  return dso_op_parallel(plan.digits ? multiply_integers : multiply, &plan, plan.panels, work);
}
