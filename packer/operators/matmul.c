/* Matrix products: rows of a in blocks, columns of b in panels, one tile after the other. */
#include "parts.h"

enum { IN_PLACE_ROWS = 2 * PIXELS }; /* with fewer rows, b is read where it is */
enum { FEW = 16, TALL = 4 };         /* columns of a narrow product; rows and columns at once */

/* The view of a product that its items use. */
struct plan {
  const struct dso_op_matmul *product;
  int64_t batches[2], tiles, panels; /* of one product */
  int64_t chunks;                    /* of POSITIONS tiles */
  int a_is_packed, b_is_packed;      /* in the workspace */
  int is_narrow;                     /* dot products of rows with columns of b in the workspace */
  int64_t a_size, b_size;            /* floats of one product there */
  float *a, *b;
};

static struct plan plan_of(const struct dso_op_matmul *product) {
  struct plan plan = {.product = product};
  const int64_t inner = product->inner;
  for (int d = 0; d < 2; d++) plan.batches[d] = max(product->batch[d], 1);
  plan.tiles = ceil_div(product->rows, PIXELS);
  plan.panels = ceil_div(product->columns, PANEL);
  plan.is_narrow = product->columns <= FEW && product->rows >= FEW && product->a_column == 1 &&
                   product->b_type == DSO_OP_FLOAT32;
  plan.a_is_packed = !plan.is_narrow && (product->rows > 1 || product->a_column != 1);
  plan.b_is_packed =
      !plan.is_narrow && !product->b_is_packed &&
      (product->b_column != 1 || product->columns % PANEL || product->rows >= IN_PLACE_ROWS);
  plan.a_size = plan.a_is_packed ? ceil_div(inner, BLOCK) * BLOCK * product->rows : 0;
  plan.b_size = plan.b_is_packed ? plan.panels * PANEL * inner : 0;
  if (plan.is_narrow) plan.tiles = ceil_div(product->rows, TALL);
  if (plan.is_narrow) plan.b_size = product->columns * inner;
  plan.chunks = ceil_div(plan.tiles, POSITIONS);
  return plan;
}

int64_t dso_op_matmul_workspace(const struct dso_op_matmul *product) {
  const struct plan plan = plan_of(product);
  return (plan.a_size + plan.b_size) * plan.batches[0] * plan.batches[1];
}

int64_t dso_op_matmul_packed_size(const struct dso_op_matmul *product) {
  return ceil_div(product->columns, PANEL) * PANEL * product->inner;
}

void dso_op_matmul_pack(const struct dso_op_matmul *product, const float *b, int64_t b_row,
                        int64_t b_column, float *packed) {
  for (int64_t j = 0; j < product->columns; j += PANEL, packed += PANEL * product->inner)
    dso_op_pack_panel(b + j * b_column, b_row, b_column, product->inner, product->columns - j,
                      packed);
}

/* The distance of a product of the batch from the first. */
static int64_t offset(const struct plan *plan, const int64_t *distance, int64_t batch) {
  return batch / plan->batches[1] * distance[0] + batch % plan->batches[1] * distance[1];
}

/* One item of the preparation: a tile of a, or a panel of b. */
static void prepare(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_matmul *product = plan->product;
  const int64_t inner = product->inner, a_tiles = plan->a_is_packed ? plan->tiles : 0;
  const int64_t items = a_tiles + (plan->b_is_packed ? plan->panels : 0);
  const int64_t batch = index / items, part = index % items;
  if (part < a_tiles) {
    const int64_t row = part_begin(product->rows, plan->tiles, part);
    const int64_t rows = part_begin(product->rows, plan->tiles, part + 1) - row;
    dso_op_pack_rows(product->a + offset(plan, product->a_batch, batch) + row * product->a_row,
                     product->a_row, product->a_column, rows, inner, 1,
                     plan->a + batch * plan->a_size + row * ceil_div(inner, BLOCK) * BLOCK,
                     rows * BLOCK);
  } else {
    const int64_t panel = part - a_tiles, column = panel * PANEL;
    const float *b = product->b;
    dso_op_pack_panel(b + offset(plan, product->b_batch, batch) + column * product->b_column,
                      product->b_row, product->b_column, inner, product->columns - column,
                      plan->b + batch * plan->b_size + panel * PANEL * inner);
  }
}

/* The sums of one row with a panel, which is read once, in order. */
static void multiply_row(const float *a, const float *weight, int64_t step, int64_t inner,
                         float *to) {
  vec sums[PANEL / LANES];
  UNROLL
  for (int v = 0; v < PANEL / LANES; v++) sums[v] = splat(0);
  for (int64_t k = 0; k < inner; k++, weight += step) UNROLL
  for (int v = 0; v < PANEL / LANES; v++) sums[v] += load(weight + v * LANES) * a[k];
  UNROLL
  for (int v = 0; v < PANEL / LANES; v++) store(to + v * LANES, sums[v]);
}

/* One item: a panel of columns for a chunk of rows. */
static void multiply(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_matmul *product = plan->product;
  const int64_t inner = product->inner, rows = product->rows, parts = plan->chunks * plan->panels;
  const int64_t batch = index / parts, part = index % parts;
  const int64_t chunk = part / plan->panels, panel = part % plan->panels;
  const int64_t column = panel * PANEL, columns = min(product->columns - column, PANEL);

  const float *a = plan->a_is_packed ? plan->a + batch * plan->a_size
                                     : product->a + offset(plan, product->a_batch, batch);
  const float *b = product->b;
  if (!plan->b_is_packed) b = element(b, product->b_type, offset(plan, product->b_batch, batch));
  struct tile tile = {.step = BLOCK,
                      .blocks = ceil_div(inner, BLOCK),
                      .block = BLOCK,
                      .last = inner - (ceil_div(inner, BLOCK) - 1) * BLOCK,
                      .taps = {1, 1, 1},
                      .type = product->b_type,
                      .weight_step = PANEL};
  if (plan->b_is_packed) tile.weight = plan->b + batch * plan->b_size + panel * PANEL * inner;
  else if (product->b_is_packed) tile.weight = element(b, product->b_type, panel * PANEL * inner);
  else tile.weight = b + column, tile.weight_step = product->b_row;

  struct position positions[POSITIONS] = {{.data = NULL}};
  _Alignas(64) float sums[POSITIONS * PIXELS * PANEL];
  const int64_t first = part_begin(plan->tiles, plan->chunks, chunk);
  const int64_t at = offset(plan, product->out_batch, batch) + column;
  const int count = (int)(part_begin(plan->tiles, plan->chunks, chunk + 1) - first);
  for (int i = 0; i < count; i++) {
    const int64_t row = part_begin(rows, plan->tiles, first + i);
    const int64_t height = part_begin(rows, plan->tiles, first + i + 1) - row;
    positions[i] = (struct position){.data = a + row * tile.blocks * BLOCK,
                                     .plane = height * BLOCK,
                                     .at = at + row * product->out_row,
                                     .rows = 1,
                                     .columns = (int)height};
  }
  const struct place place = {.after = &product->after,
                              .out = product->out,
                              .step = product->out_row,
                              .plane = BLOCK,
                              .first = column};
  if (rows == 1 && tile.type == DSO_OP_FLOAT32) {
    multiply_row(a, tile.weight, tile.weight_step, inner, sums);
    dso_op_finish(&place, positions, columns, sums);
    return;
  }
  dso_op_tiles(&tile, positions, count, columns, sums, &place);
}

/* ---- Few columns ---- */

/* One item: the columns of b as rows of the workspace. */
static void turn(const void *data, int64_t batch) {
  const struct plan *plan = data;
  const struct dso_op_matmul *product = plan->product;
  const float *b = (const float *)product->b + offset(plan, product->b_batch, batch);
  const int64_t row = product->b_is_packed ? PANEL : product->b_row;
  const int64_t column = product->b_is_packed ? 1 : product->b_column;
  float *to = plan->b + batch * plan->b_size;
  for (int64_t j = 0; j < product->columns; j++)
    for (int64_t k = 0; k < product->inner; k++) *to++ = b[k * row + j * column];
}

INLINE void add_dots(const float *a, int64_t a_row, const float *b, int64_t inner, float *sums,
                     const int rows, const int columns) {
  vec sum[TALL][TALL];
  UNROLL
  for (int i = 0; i < rows; i++) UNROLL
  for (int j = 0; j < columns; j++) sum[i][j] = splat(0);
  for (int64_t k = 0; k < inner; k += LANES) {
    const int64_t count = min(inner - k, LANES);
    vec x[TALL];
    UNROLL
    for (int i = 0; i < rows; i++)
      x[i] = count == LANES ? load(a + i * a_row + k) : load_part(a + i * a_row + k, count, 0);
    UNROLL
    for (int j = 0; j < columns; j++) {
      const float *at = b + j * inner + k;
      const vec y = count == LANES ? load(at) : load_part(at, count, 0);
      UNROLL
      for (int i = 0; i < rows; i++) sum[i][j] += x[i] * y;
    }
  }
  UNROLL
  for (int i = 0; i < rows; i++) {
    const vec *s = sum[i];
    *(four *)(sums + i * PANEL) = four_sums(s[0], s[1 % columns], s[2 % columns], s[3 % columns]);
  }
}

static void add_few(const float *a, int64_t a_row, const float *b, int64_t inner, float *sums,
                    int rows, int64_t columns) {
  for (; rows % TALL; rows--, a += a_row, sums += PANEL) /* one by one, if they are not enough */
    for (int64_t j = 0; j < columns; j++) add_dots(a, 0, b + j * inner, inner, sums + j, 1, 1);
  if (rows == 0) return;
  switch (columns) {
    case 1: add_dots(a, a_row, b, inner, sums, TALL, 1); break;
    case 2: add_dots(a, a_row, b, inner, sums, TALL, 2); break;
    case 3: add_dots(a, a_row, b, inner, sums, TALL, 3); break;
    default: add_dots(a, a_row, b, inner, sums, TALL, TALL);
  }
}

/* One item: some rows. */
static void multiply_few(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_matmul *product = plan->product;
  const int64_t inner = product->inner, batch = index / plan->chunks, chunk = index % plan->chunks;
  const int64_t end = min((chunk + 1) * POSITIONS * TALL, product->rows);
  const float *b = plan->b + batch * plan->b_size;
  const struct place place = {
      .after = &product->after, .out = product->out, .step = product->out_row, .plane = BLOCK};
  for (int64_t row = chunk * POSITIONS * TALL; row < end; row += TALL) {
    const int rows = (int)min(end - row, TALL);
    const float *a = product->a + offset(plan, product->a_batch, batch) + row * product->a_row;
    float sums[TALL * PANEL];
    for (int64_t j = 0; j < product->columns; j += TALL)
      add_few(a, product->a_row, b + j * inner, inner, sums + j, rows,
              min(product->columns - j, TALL));
    const struct position position = {.at = offset(plan, product->out_batch, batch) +
                                            row * product->out_row,
                                      .rows = 1,
                                      .columns = rows};
    dso_op_finish(&place, &position, product->columns, sums);
  }
}

int dso_op_matmul(const struct dso_op_matmul *product) {
  struct plan plan = plan_of(product);
  const int64_t batches = plan.batches[0] * plan.batches[1];
  const int64_t prepared =
      (plan.a_is_packed ? plan.tiles : 0) + (plan.b_is_packed ? plan.panels : 0);
  const int64_t moved = (plan.a_size + plan.b_size) * batches;
  if (product->rows < 1 || product->columns < 1) return 0;
  plan.a = product->workspace;
  plan.b = plan.b_size ? plan.a + plan.a_size * batches : NULL;
  if (plan.is_narrow) {
    if (dso_op_parallel(turn, &plan, batches, moved)) return -1;
    return dso_op_parallel(multiply_few, &plan, batches * plan.chunks,
                           batches * product->rows * product->inner * product->columns);
  }
  if (prepared && dso_op_parallel(prepare, &plan, batches * prepared, moved)) return -1;
  return dso_op_parallel(multiply, &plan, batches * plan.panels * plan.chunks,
                         batches * product->rows * product->inner * product->columns);
}
