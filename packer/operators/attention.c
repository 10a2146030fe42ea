/* Attention: tiles of rows of q; for some keys at once their products, softmax, and the sums of v.
 *
 * A tile keeps the greatest product and the sum of exponentials of each row. When later keys have a
 * greater product, what the row has so far is scaled to it. */
#include <math.h>
#include <string.h>

#include "parts.h"

enum { KEYS = 512 }; /* at once; the weights of one tile stay in the second cache */

/* The view of an attention that its items use. Sizes are those of one head in the workspace. */
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
  plan.batches = most(attention->batch, 1);
  plan.kv_heads = attention->kv_heads ? attention->kv_heads : attention->heads;
  plan.share = attention->heads / plan.kv_heads;
  plan.value_size = attention->value_size ? attention->value_size : size;
  plan.tiles = up(attention->rows, PIXELS);
  plan.panels = up(attention->keys, PANEL);
  plan.q_size = up(size, BLOCK) * BLOCK * attention->rows;
  plan.k_size = plan.panels * PANEL * size;
  /* Whole panels of v are read where they are. */
  plan.v_size = plan.value_size % PANEL ? up(plan.value_size, PANEL) * PANEL * attention->keys : 0;
  plan.scale =
      attention->scale != 0 ? attention->scale : (float)inverse_root((double)most(size, 1));
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
                         row * up(size, BLOCK) * BLOCK,
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

/* One tile: rows of q, and what is known of them so far. */
struct rows {
  int64_t batch, head, kv; /* kv: of the workspace's heads */
  int64_t first;           /* row */
  int count;
  float greatest[PIXELS], sum[PIXELS], change[PIXELS]; /* change: the factor of earlier sums */
};

/* The products of all rows with keys begin ... begin + count - 1, in blocks: [block][row][BLOCK].
 * Products of keys that a row does not see are -inf, in the missing rest of a block too. */
static void multiply(const struct plan *plan, const struct rows *rows, int64_t begin, int64_t count,
                     float *products) {
  const struct dso_op_attention *attention = plan->attention;
  const int64_t size = attention->size, blocks = up(size, BLOCK), q_head = plan->q_size;
  const struct spot spot = {.data = plan->q +
                                    (rows->batch * attention->heads + rows->head) * q_head +
                                    rows->first * blocks * BLOCK,
                            .plane = rows->count * BLOCK,
                            .rows = 1,
                            .columns = rows->count};
  struct tile tile = {.step = BLOCK,
                      .blocks = blocks,
                      .block = BLOCK,
                      .last = size - (blocks - 1) * BLOCK,
                      .taps = {1, 1},
                      .weight_step = PANEL};
  for (int64_t j = 0; j < count; j += PANEL) {
    _Alignas(64) float sums[PIXELS * PANEL];
    tile.weight = plan->k + rows->kv * plan->k_size + (begin + j) * size;
    dso_op_tiles(&tile, &spot, 1, least(count - j, PANEL), sums);
    for (int r = 0; r < rows->count; r++)
      for (int64_t b = 0; b < PANEL; b += BLOCK) {
        float *to = products + (j + b) * rows->count + r * BLOCK;
        memcpy(to, sums + r * PANEL + b, BLOCK * sizeof *to);
        for (int64_t c = most(least(count - j - b, BLOCK), 0); c < BLOCK; c++) to[c] = -INFINITY;
      }
  }
}

/* Add the mask to the products of one row; `to` is its first block. */
static void hide(const struct plan *plan, const struct rows *rows, int r, int64_t begin,
                 int64_t count, float *to) {
  const struct dso_op_attention *attention = plan->attention;
  const int64_t row = rows->first + r, step = rows->count * BLOCK;
  if (attention->mask != NULL) {
    const float *mask_of_row = attention->mask + rows->batch * attention->mask_batch +
                               rows->head * attention->mask_head + row * attention->mask_row +
                               begin;
    for (int64_t j = 0; j < count; j++) to[j / BLOCK * step + j % BLOCK] += mask_of_row[j];
  }
  if (attention->is_causal)
    for (int64_t j = most(row + attention->past + 1 - begin, 0); j < count; j++)
      to[j / BLOCK * step + j % BLOCK] = -INFINITY;
}

/* Turn the products of one row into exponentials. */
static void soften(struct rows *rows, int r, int64_t blocks, float *to) {
  const int64_t step = rows->count * BLOCK;
  vec most_of_lane = splat(rows->greatest[r]), sum_of_lane = splat(0);
  for (int64_t b = 0; b < blocks; b++)
    for (int v = 0; v < BLOCK_VECTORS; v++) {
      const vec product = load(to + b * step + v * LANES);
      most_of_lane = choose(product > most_of_lane, product, most_of_lane);
    }
  const float greatest = greatest_lane(most_of_lane);
  const float zero = greatest == -INFINITY ? 0 : greatest; /* a row that sees no key yet */
  for (int64_t b = 0; b < blocks; b++)
    for (int v = 0; v < BLOCK_VECTORS; v++) {
      const vec power = vec_exp(load(to + b * step + v * LANES) - zero);
      store(to + b * step + v * LANES, power);
      sum_of_lane += power;
    }
  rows->change[r] = vec_exp(splat(rows->greatest[r] - zero))[0];
  rows->sum[r] = rows->sum[r] * rows->change[r] + sum_of_lanes(sum_of_lane);
  rows->greatest[r] = greatest;
}

/* Add the values of these keys to the output; after the last keys, divide by the sums. */
static void add_values(const struct plan *plan, const struct rows *rows, int64_t begin,
                       int64_t count, const float *powers) {
  const struct dso_op_attention *attention = plan->attention;
  const int is_first = begin == 0, is_last = begin + count == attention->keys;
  const struct spot spot = {
      .data = powers, .plane = rows->count * BLOCK, .rows = 1, .columns = rows->count};
  struct tile tile = {.step = BLOCK,
                      .blocks = up(count, BLOCK),
                      .block = BLOCK,
                      .last = count - (up(count, BLOCK) - 1) * BLOCK,
                      .taps = {1, 1},
                      .weight_step = plan->v_size ? PANEL : attention->v_row};
  const float *v = attention->v + rows->batch * attention->v_batch +
                   rows->head / plan->share * attention->v_head;
  float *out = attention->out + rows->batch * attention->out_batch +
               rows->head * attention->out_head + rows->first * attention->out_row;
  for (int64_t d = 0; d < plan->value_size; d += PANEL) {
    _Alignas(64) float sums[PIXELS * PANEL];
    const int64_t width = least(plan->value_size - d, PANEL);
    tile.weight = plan->v_size
                      ? plan->v + rows->kv * plan->v_size + d * attention->keys + begin * PANEL
                      : v + begin * attention->v_row + d;
    dso_op_tiles(&tile, &spot, 1, width, sums);
    for (int r = 0; r < rows->count; r++) {
      float *to = out + r * attention->out_row + d, *sum = sums + r * PANEL;
      const float factor = !is_last ? 1 : rows->sum[r] > 0 ? 1 / rows->sum[r] : 0;
      if (!is_first)
        for (int64_t j = 0; j < width; j++) sum[j] += to[j] * rows->change[r];
      if (is_last)
        for (int64_t j = 0; j < PANEL; j += LANES) store(sum + j, load(sum + j) * factor);
      memcpy(to, sum, (size_t)width * sizeof *to);
    }
  }
}

/* One item: a tile of rows of one head. */
static void attend(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_attention *attention = plan->attention;
  const int64_t head = index / plan->tiles, tile = index % plan->tiles;
  struct rows rows = {.batch = head / attention->heads, .head = head % attention->heads};
  _Alignas(64) float products[KEYS * PIXELS];
  rows.kv = rows.batch * plan->kv_heads + rows.head / plan->share;
  rows.first = part_begin(attention->rows, plan->tiles, tile);
  rows.count = (int)(part_begin(attention->rows, plan->tiles, tile + 1) - rows.first);
  for (int r = 0; r < rows.count; r++) rows.greatest[r] = -INFINITY;
  for (int64_t begin = 0; begin == 0 || begin < attention->keys; begin += KEYS) {
    const int64_t count = least(attention->keys - begin, KEYS);
    multiply(plan, &rows, begin, count, products);
    for (int r = 0; r < rows.count; r++) {
      hide(plan, &rows, r, begin, count, products + r * BLOCK);
      soften(&rows, r, up(count, BLOCK), products + r * BLOCK);
    }
    add_values(plan, &rows, begin, count, products);
  }
}

int dso_op_attention(const struct dso_op_attention *attention) {
  struct plan plan = plan_of(attention);
  const int64_t heads = plan.batches * attention->heads, kv_heads = plan.batches * plan.kv_heads;
  const int64_t moved = heads * plan.q_size + kv_heads * (plan.k_size + plan.v_size);
  plan.q = attention->workspace;
  plan.k = plan.q + heads * plan.q_size;
  plan.v = plan.k + kv_heads * plan.k_size;
  if (dso_op_parallel(prepare, &plan, heads * plan.tiles + 2 * kv_heads, moved)) return -1;
  return dso_op_parallel(attend, &plan, heads * plan.tiles,
                         heads * attention->rows * attention->keys *
                             (attention->size + plan.value_size));
}
