/* Products of matrices of low-precision elements: the plan of matmul.c with other tiles. */
#include "lowp.h"

/* The view of a product that its items use; sizes and distances in bytes. */
struct plan {
  const struct dso_op_lowp_matmul *product;
  int64_t batches[2], tiles, panels; /* of one product */
  int64_t chunks;                    /* of POSITIONS tiles */
  int64_t blocks;                    /* of ROW_BLOCK in a row of a */
  int64_t a_size, b_size, panel;     /* of one product in the workspace, and of a panel */
  uint8_t *a, *b;
};

static struct plan plan_of(const struct dso_op_lowp_matmul *product) {
  struct plan plan = {.product = product};
  for (int d = 0; d < 2; d++) plan.batches[d] = max(product->batch[d], 1);
  plan.tiles = ceil_div(product->rows, LOWP_PIXELS);
  plan.panels = ceil_div(product->columns, PANEL);
  plan.chunks = ceil_div(plan.tiles, POSITIONS);
  plan.blocks = ceil_div(product->inner * size_of(product->a_type), ROW_BLOCK);
  plan.a_size = plan.blocks * ROW_BLOCK * product->rows;
  plan.panel = lowp_panel_size(product->b_type, product->inner);
  plan.b_size = product->b_is_packed ? 0 : plan.panels * plan.panel;
  return plan;
}

int64_t dso_op_lowp_matmul_workspace(const struct dso_op_lowp_matmul *product) {
  const struct plan plan = plan_of(product);
  return (plan.a_size + plan.b_size) * plan.batches[0] * plan.batches[1];
}

int64_t dso_op_lowp_matmul_packed_size(const struct dso_op_lowp_matmul *product) {
  return ceil_div(product->columns, PANEL) * lowp_panel_size(product->b_type, product->inner);
}

void dso_op_lowp_matmul_pack(const struct dso_op_lowp_matmul *product, const void *b, int64_t b_row,
                             int64_t b_column, void *packed) {
  const int64_t size = lowp_panel_size(product->b_type, product->inner);
  const int64_t step = b_column * size_of(product->b_type);
  for (int64_t j = 0; j < product->columns; j += PANEL)
    dso_op_lowp_panel((const uint8_t *)b + j * step, product->b_type, b_row, b_column,
                      product->inner, product->columns - j, (uint8_t *)packed + j / PANEL * size);
}

/* One item of the preparation: a tile of a, or a panel of b. */
static void prepare(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_lowp_matmul *product = plan->product;
  const int64_t items = plan->tiles + (plan->b_size ? plan->panels : 0);
  const int64_t batch = index / items, part = index % items, inner = product->inner;
  if (part < plan->tiles) {
    const int64_t row = part_begin(product->rows, plan->tiles, part);
    const int64_t rows = part_begin(product->rows, plan->tiles, part + 1) - row;
    const int64_t at = offset(plan->batches, product->a_batch, batch) + row * product->a_row;
    dso_op_lowp_rows((const uint8_t *)product->a + at * size_of(product->a_type), product->a_type,
                     product->a_row, product->a_column, rows, inner,
                     plan->a + batch * plan->a_size + row * plan->blocks * ROW_BLOCK);
  } else {
    const int64_t panel = part - plan->tiles, column = panel * PANEL;
    const int64_t at = offset(plan->batches, product->b_batch, batch) + column * product->b_column;
    dso_op_lowp_panel((const uint8_t *)product->b + at * size_of(product->b_type), product->b_type,
                      product->b_row, product->b_column, inner, product->columns - column,
                      plan->b + batch * plan->b_size + panel * plan->panel);
  }
}

/* One item: a panel of columns for a chunk of rows. */
static void multiply(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_lowp_matmul *product = plan->product;
  const int64_t rows = product->rows, parts = plan->chunks * plan->panels;
  const int64_t batch = index / parts, part = index % parts;
  const int64_t chunk = part / plan->panels, panel = part % plan->panels;
  const int64_t column = panel * PANEL, columns = min(product->columns - column, PANEL);
  const int64_t num_words = ceil_div(product->inner, per_word(product->a_type));

  const uint8_t *b =
      plan->b_size ? plan->b + batch * plan->b_size
                   : (const uint8_t *)product->b + offset(plan->batches, product->b_batch, batch);
  const struct lowp_tile tile = {.step = ROW_BLOCK,
                                 .blocks = plan->blocks,
                                 .words = ROW_BLOCK / WORD,
                                 .last = num_words - (plan->blocks - 1) * (ROW_BLOCK / WORD),
                                 .taps = {1, 1},
                                 .weight = b + panel * plan->panel,
                                 .is_bfloat16 = is_bfloat16(product->a_type)};
  struct lowp_zeros zeros;
  if (!tile.is_bfloat16)
    dso_op_lowp_zeros(&zeros, (const int32_t *)(const void *)(tile.weight + num_words * WORD_PANEL),
                      product->inner, left_zero(product->a_zero, product->a_type), product->b_zero,
                      product->b_zero_step, product->b_type, product->after.bias, column, columns);
  struct lowp_position positions[POSITIONS] = {{.data = NULL}};
  const int64_t first = part_begin(plan->tiles, plan->chunks, chunk);
  const int64_t at = offset(plan->batches, product->out_batch, batch) + column;
  const int count = (int)(part_begin(plan->tiles, plan->chunks, chunk + 1) - first);
  for (int i = 0; i < count; i++) {
    const int64_t row = part_begin(rows, plan->tiles, first + i);
    const int64_t height = part_begin(rows, plan->tiles, first + i + 1) - row;
    positions[i] = (struct lowp_position){.data = plan->a + batch * plan->a_size +
                                                  row * plan->blocks * ROW_BLOCK,
                                          .plane = height * ROW_BLOCK,
                                          .at = at + row * product->out_row,
                                          .columns = (int)height};
  }
  const struct lowp_place place = {.after = &product->after,
                                   .type = product->out_type,
                                   .out = product->out,
                                   .step = product->out_row,
                                   .first = column,
                                   .zeros = tile.is_bfloat16 ? NULL : &zeros};
  dso_op_lowp_tiles(&tile, positions, count, columns, &place);
}

int dso_op_lowp_matmul(const struct dso_op_lowp_matmul *product) {
  struct plan plan = plan_of(product);
  const int64_t batches = plan.batches[0] * plan.batches[1];
  const int64_t prepared = plan.tiles + (plan.b_size ? plan.panels : 0);
  const int64_t moved = (plan.a_size + plan.b_size) * batches;
  if (product->rows < 1 || product->columns < 1) return 0;
  plan.a = product->workspace;
  plan.b = plan.a + plan.a_size * batches;
  if (dso_op_parallel(prepare, &plan, batches * prepared, moved)) return -1;
  return dso_op_parallel(multiply, &plan, batches * plan.panels * plan.chunks,
                         batches * product->rows * product->inner * product->columns / 4);
}
