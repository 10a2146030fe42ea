/* Attention: tiles of rows of q; for some keys at once their products, softmax, and the sums of v.
 *
 * A tile keeps the greatest product and the sum of exponentials of each row. When later keys have a
 * greater product, what the row has so far is scaled to it. */
#include <math.h>
#include <string.h>

#include "parts.h"

/* Keys at once, for so many tiles; their products stay in the second cache. PLANE is the distance of
 * blocks of products. */
enum { KEYS = 256, TILES = 4, PLANE = PIXELS * BLOCK };

/* The view of an attention that its items use. Sizes are for one head in the workspace. */
struct plan {
  const struct dso_op_attention *attention;
  int64_t batches, kv_heads, share; /* share: heads of q for one of k and v */
  int64_t value_size, tiles, panels;
  int64_t q_size, k_size, v_size;
  float scale;
  float *q, *k, *v;
};

static struct plan plan_of(const struct dso_op_attention *attention) {
  const int64_t size = attention->size;
  struct plan plan = {.attention = attention};
  plan.batches = max(attention->batch, 1);
  plan.kv_heads = attention->kv_heads ? attention->kv_heads : attention->heads;
  plan.share = attention->heads / plan.kv_heads;
  plan.value_size = attention->value_size ? attention->value_size : size;
  plan.tiles = ceil_div(attention->rows, PIXELS);
  plan.panels = ceil_div(attention->keys, PANEL);
  plan.q_size = ceil_div(size, BLOCK) * BLOCK * attention->rows;
  plan.k_size = plan.panels * PANEL * size;
  /* Whole panels of v are read where they are. */
  plan.v_size =
      plan.value_size % PANEL ? ceil_div(plan.value_size, PANEL) * PANEL * attention->keys : 0;
  plan.scale = attention->scale != 0 ? attention->scale : (float)inverse_root((double)max(size, 1));
  return plan;
}

int64_t dso_op_attention_workspace(const struct dso_op_attention *attention) {
  const struct plan plan = plan_of(attention);
  return plan.batches *
         (attention->heads * plan.q_size + plan.kv_heads * (plan.k_size + plan.v_size));
}

/* One item of the preparation: a tile of q, or all of one head's k or v. */
static void prepare(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_attention *attention = plan->attention;
  const int64_t size = attention->size, keys = attention->keys, heads = attention->heads;
  const int64_t q_items = heads * plan->tiles, items = q_items + 2 * plan->kv_heads;
  const int64_t batch = index / items, part = index % items;
  if (part < q_items) {
    const int64_t head = part / plan->tiles, tile = part % plan->tiles;
    const int64_t row = part_begin(attention->rows, plan->tiles, tile);
    const int64_t rows = part_begin(attention->rows, plan->tiles, tile + 1) - row;
    dso_op_pack_rows(attention->q + batch * attention->q_batch + head * attention->q_head +
                         row * attention->q_row,
                     attention->q_row, 1, rows, size, plan->scale,
                     plan->q + (batch * heads + head) * plan->q_size +
                         row * ceil_div(size, BLOCK) * BLOCK,
                     rows * BLOCK);
    return;
  }
  const int64_t head = (part - q_items) / 2, at = batch * plan->kv_heads + head;
  if (part % 2 == q_items % 2) {
    const float *k = attention->k + batch * attention->k_batch + head * attention->k_head;
    for (int64_t j = 0; j < keys; j += PANEL)
      dso_op_pack_panel(k + j * attention->k_row, 1, attention->k_row, size, keys - j,
                        plan->k + at * plan->k_size + j * size);
  } else if (plan->v_size) {
    const float *v = attention->v + batch * attention->v_batch + head * attention->v_head;
    for (int64_t j = 0; j < plan->value_size; j += PANEL)
      dso_op_pack_panel(v + j, attention->v_row, 1, keys, plan->value_size - j,
                        plan->v + at * plan->v_size + j * keys);
  }
}

/* The rows of q of one item, and what is known of them so far. */
struct rows {
  int64_t batch, head, kv; /* kv: of the workspace's heads */
  int tiles;
  struct position positions[TILES]; /* of q, and where their rows are in the output */
  int64_t first[TILES];             /* rows */
  int64_t keys;                     /* that any of the rows sees */
  float greatest[TILES][PIXELS], sum[TILES][PIXELS];
  float change[TILES][PIXELS]; /* the factor of earlier sums */
};

static const struct dso_op_after nothing;

/* The products of all rows with keys begin ... begin + count - 1: [tile][block][PIXELS][BLOCK]. */
static void multiply(const struct plan *plan, const struct rows *rows, int64_t begin, int64_t count,
                     float *products) {
  const int64_t size = plan->attention->size, blocks = ceil_div(size, BLOCK);
  const struct place place = {
      .after = &nothing, .out = products, .step = BLOCK, .plane = PLANE, .is_padded = 1};
  _Alignas(64) float sums[TILES * PIXELS * PANEL];
  struct position positions[TILES] = {{.data = NULL}};
  struct tile tile = {.step = BLOCK,
                      .blocks = blocks,
                      .block = BLOCK,
                      .last = size - (blocks - 1) * BLOCK,
                      .taps = {1, 1, 1},
                      .weight_step = PANEL};
  for (int64_t j = 0; j < count; j += PANEL) {
    for (int t = 0; t < rows->tiles; t++) {
      positions[t] = rows->positions[t];
      positions[t].at = t * KEYS * PIXELS + j / BLOCK * PLANE;
    }
    tile.weight = plan->k + rows->kv * plan->k_size + (begin + j) * size;
    dso_op_tiles(&tile, positions, rows->tiles, min(count - j, PANEL), sums, &place);
  }
}

/* Add the mask to the products of one row; `to` is its first block. Products of keys that the row
 * does not see are -inf, in the missing rest of a block too. */
static void hide(const struct plan *plan, const struct rows *rows, int64_t row, int64_t begin,
                 int64_t count, float *to) {
  const struct dso_op_attention *attention = plan->attention;
  const float *values = attention->mask + rows->batch * attention->mask_batch +
                        rows->head * attention->mask_head + row * attention->mask_row + begin;
  int64_t seen = count, j = 0;
  if (attention->is_causal) seen = max(min(row + attention->past + 1 - begin, count), 0);
  if (attention->mask != NULL) {
    for (; j + LANES <= seen; j += LANES) {
      float *product = to + j / BLOCK * PLANE + j % BLOCK;
      store(product, load(product) + load(values + j));
    }
    for (; j < seen; j++) to[j / BLOCK * PLANE + j % BLOCK] += values[j];
  }
  for (j = seen; j < ceil_div(count, BLOCK) * BLOCK; j++)
    to[j / BLOCK * PLANE + j % BLOCK] = -INFINITY;
}

/* Turn the products of a row into exponentials. */
static void softmax(struct rows *rows, int t, int r, int64_t blocks, float *to) {
  const float before = rows->greatest[t][r];
  vec max_of_lane = splat(before), sum_of_lane = splat(0);
  for (int64_t b = 0; b < blocks; b++)
    for (int v = 0; v < BLOCK_VECTORS; v++)
      max_of_lane = greater(load(to + b * PLANE + v * LANES), max_of_lane);
  const float greatest = greatest_lane(max_of_lane);
  const float zero = greatest == -INFINITY ? 0 : greatest; /* a row that sees no key yet */
  for (int64_t b = 0; b < blocks; b++)
    for (int v = 0; v < BLOCK_VECTORS; v++) {
      const vec power = vec_exp_below(load(to + b * PLANE + v * LANES) - zero);
      store(to + b * PLANE + v * LANES, power);
      sum_of_lane += power;
    }
  rows->change[t][r] = before == -INFINITY ? 0 : vec_exp_below(splat(before - zero))[0];
  rows->sum[t][r] = rows->sum[t][r] * rows->change[t][r] + sum_of_lanes(sum_of_lane);
  rows->greatest[t][r] = greatest;
}

/* Multiply each row of the output by its factor; where the sum of exponentials is 0, by 0. */
static void scale(const struct plan *plan, const struct rows *rows, int is_last) {
  const struct dso_op_attention *attention = plan->attention;
  for (int t = 0; t < rows->tiles; t++)
    for (int r = 0; r < rows->positions[t].columns; r++) {
      const float sum = rows->sum[t][r];
      const float factor = !is_last ? rows->change[t][r] : sum > 0 ? 1 / sum : sum * 0;
      float *out = attention->out + rows->positions[t].at + r * attention->out_row;
      int64_t d = 0;
      for (; d + LANES <= plan->value_size; d += LANES) store(out + d, load(out + d) * factor);
      for (; d < plan->value_size; d++) out[d] *= factor;
    }
}

/* Add the values of these keys to the output; after the last keys, divide by the sums. */
static void add_values(const struct plan *plan, const struct rows *rows, int64_t begin,
                       int64_t count, const float *powers) {
  const struct dso_op_attention *attention = plan->attention;
  const struct dso_op_after add = {.residual = attention->out};
  const struct place place = {.after = begin ? &add : &nothing,
                              .out = attention->out,
                              .step = attention->out_row,
                              .plane = BLOCK};
  const float *v = attention->v + rows->batch * attention->v_batch +
                   rows->head / plan->share * attention->v_head;
  _Alignas(64) float sums[TILES * PIXELS * PANEL];
  struct position positions[TILES] = {{.data = NULL}};
  struct tile tile = {.step = BLOCK,
                      .blocks = ceil_div(count, BLOCK),
                      .block = BLOCK,
                      .last = count - (ceil_div(count, BLOCK) - 1) * BLOCK,
                      .taps = {1, 1, 1},
                      .weight_step = plan->v_size ? PANEL : attention->v_row};
  if (begin) scale(plan, rows, 0);
  for (int64_t d = 0; d < plan->value_size; d += PANEL) {
    for (int t = 0; t < rows->tiles; t++) {
      positions[t] = rows->positions[t];
      positions[t].data = powers + t * KEYS * PIXELS;
      positions[t].plane = PLANE;
      positions[t].at += d;
    }
    tile.weight = plan->v_size
                      ? plan->v + rows->kv * plan->v_size + d * attention->keys + begin * PANEL
                      : v + begin * attention->v_row + d;
    dso_op_tiles(&tile, positions, rows->tiles, min(plan->value_size - d, PANEL), sums, &place);
  }
  if (begin + count >= rows->keys) scale(plan, rows, 1);
}

/* The tiles of rows of an item. */
static struct rows rows_of(const struct plan *plan, int64_t index) {
  const struct dso_op_attention *attention = plan->attention;
  const int64_t items = ceil_div(plan->tiles, TILES), head = index / items,
                begin = index % items * TILES;
  const int64_t blocks = ceil_div(attention->size, BLOCK);
  struct rows rows = {.batch = head / attention->heads,
                      .head = head % attention->heads,
                      .tiles = (int)min(plan->tiles - begin, TILES),
                      .keys = attention->keys};
  rows.kv = rows.batch * plan->kv_heads + rows.head / plan->share;
  for (int t = 0; t < rows.tiles; t++) {
    const int64_t first = part_begin(attention->rows, plan->tiles, begin + t);
    const int64_t end = part_begin(attention->rows, plan->tiles, begin + t + 1);
    rows.first[t] = first;
    rows.positions[t] =
        (struct position){.data = plan->q + head * plan->q_size + first * blocks * BLOCK,
                          .plane = (end - first) * BLOCK,
                          .at = rows.batch * attention->out_batch +
                                rows.head * attention->out_head + first * attention->out_row,
                          .rows = 1,
                          .columns = (int)(end - first)};
    for (int r = 0; r < PIXELS; r++) rows.greatest[t][r] = -INFINITY;
    if (attention->is_causal && t + 1 == rows.tiles)
      rows.keys = max(min(end + attention->past, attention->keys), 0);
  }
  return rows;
}

/* One item: some tiles of rows of one head. */
static void attend(const void *data, int64_t index) {
  const struct plan *plan = data;
  struct rows rows = rows_of(plan, index);
  _Alignas(64) float products[TILES * KEYS * PIXELS];
  for (int64_t begin = 0; begin == 0 || begin < rows.keys; begin += KEYS) {
    const int64_t count = min(rows.keys - begin, KEYS);
    multiply(plan, &rows, begin, count, products);
    for (int t = 0; t < rows.tiles; t++)
      for (int r = 0; r < rows.positions[t].columns; r++) {
        float *of_row = products + t * KEYS * PIXELS + r * BLOCK;
        hide(plan, &rows, rows.first[t] + r, begin, count, of_row);
        softmax(&rows, t, r, ceil_div(count, BLOCK), of_row);
      }
    add_values(plan, &rows, begin, count, products);
  }
}

int dso_op_attention(const struct dso_op_attention *attention) {
  if (attention->rows == 1) return dso_op_attention_row(attention);
  struct plan plan = plan_of(attention);
  const int64_t heads = plan.batches * attention->heads, kv_heads = plan.batches * plan.kv_heads;
  const int64_t moved = heads * plan.q_size + kv_heads * (plan.k_size + plan.v_size);
  plan.q = attention->workspace;
  plan.k = plan.q + heads * plan.q_size;
  plan.v = plan.k + kv_heads * plan.k_size;
  if (dso_op_parallel(prepare, &plan, heads * plan.tiles + 2 * kv_heads, moved)) return -1;
  return dso_op_parallel(attend, &plan, heads * ceil_div(plan.tiles, TILES),
                         heads * attention->rows * attention->keys *
                             (attention->size + plan.value_size));
}
