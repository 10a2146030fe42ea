/* Matrix products of doubles: columns of b in panels, some rows of a at a time. */
#include "parts.h"

enum {
  WIDTH = LANES / 2,   /* doubles in a vector */
  COLUMNS = 2 * WIDTH, /* of a panel */
  ROWS = PIXELS < 12 ? PIXELS : 12,
  CHUNK = 8 * ROWS, /* of one item */
};
typedef double doubles __attribute__((vector_size(4 * LANES), aligned(8), may_alias));

/* The view of a product that its items use. */
struct plan {
  const struct dso_op_double_matmul *product;
  int64_t batches[2], panels, chunks; /* of one product */
  int64_t b_size;                     /* doubles of one packed factor; 0: b is read where it is */
};

static struct plan plan_of(const struct dso_op_double_matmul *product) {
  struct plan plan = {.product = product};
  for (int d = 0; d < 2; d++) plan.batches[d] = max(product->batch[d], 1);
  plan.panels = ceil_div(product->columns, COLUMNS);
  plan.chunks = ceil_div(product->rows, CHUNK);
  if (product->b_column != 1 || product->columns % COLUMNS || product->rows > ROWS)
    plan.b_size = plan.panels * COLUMNS * product->inner;
  return plan;
}

int64_t dso_op_double_matmul_workspace(const struct dso_op_double_matmul *product) {
  const struct plan plan = plan_of(product);
  return plan.b_size * plan.batches[0] * plan.batches[1];
}

/* The distance of a product of the batch from the first. */
static int64_t offset(const struct plan *plan, const int64_t *distance, int64_t batch) {
  return batch / plan->batches[1] * distance[0] + batch % plan->batches[1] * distance[1];
}

/* One item of the preparation: a panel, with zeros for the columns that are missing. */
static void pack(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_double_matmul *product = plan->product;
  const int64_t batch = index / plan->panels, panel = index % plan->panels;
  const int64_t count = min(product->columns - panel * COLUMNS, COLUMNS);
  const int64_t row = product->b_row, column = product->b_column;
  const double *b = product->b + offset(plan, product->b_batch, batch) + panel * COLUMNS * column;
  double *to = product->workspace + batch * plan->b_size + panel * COLUMNS * product->inner;
  for (int64_t k = 0; k < product->inner; k++, b += row, to += COLUMNS)
    for (int64_t j = 0; j < COLUMNS; j++) to[j] = j < count ? b[j * column] : 0;
}

/* Some rows of a panel. */
INLINE void multiply_rows(const struct dso_op_double_matmul *product, const double *a,
                          const double *b, int64_t b_row, double *out, int64_t columns,
                          const int rows) {
  const int64_t a_row = product->a_row, a_column = product->a_column;
  doubles sum[ROWS][2];
  UNROLL
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (doubles){0};
  for (int64_t k = 0; k < product->inner; k++, a += a_column, b += b_row) {
    const doubles low = *(const doubles *)b, high = *(const doubles *)(b + WIDTH);
    UNROLL
    for (int r = 0; r < rows; r++) {
      sum[r][0] += a[r * a_row] * low;
      sum[r][1] += a[r * a_row] * high;
    }
  }
  UNROLL
  for (int r = 0; r < rows; r++)
    memcpy(out + r * product->out_row, sum[r], (size_t)columns * sizeof *out);
}

/* One item: a panel of columns for a chunk of rows. */
static void multiply(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_double_matmul *product = plan->product;
  const int64_t parts = plan->chunks * plan->panels, batch = index / parts;
  const int64_t chunk = index % parts / plan->panels, column = index % plan->panels * COLUMNS;
  const int64_t columns = min(product->columns - column, COLUMNS);
  const double *a = product->a + offset(plan, product->a_batch, batch);
  const double *b = product->b + offset(plan, product->b_batch, batch) + column;
  int64_t b_row = product->b_row;
  if (plan->b_size) {
    b = product->workspace + batch * plan->b_size + column * product->inner;
    b_row = COLUMNS;
  }
  double *out = product->out + offset(plan, product->out_batch, batch) + column;
  const int64_t end = part_begin(product->rows, plan->chunks, chunk + 1);
  int64_t done;
  for (int64_t row = part_begin(product->rows, plan->chunks, chunk); row < end; row += done) {
    const double *from = a + row * product->a_row;
    double *to = out + row * product->out_row;
    const int64_t left = end - row;
    done = left >= ROWS ? ROWS : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    if (done == ROWS) multiply_rows(product, from, b, b_row, to, columns, ROWS);
    else if (done == 4) multiply_rows(product, from, b, b_row, to, columns, 4);
    else if (done == 2) multiply_rows(product, from, b, b_row, to, columns, 2);
    else multiply_rows(product, from, b, b_row, to, columns, 1);
  }
}

int dso_op_double_matmul(const struct dso_op_double_matmul *product) {
  const struct plan plan = plan_of(product);
  const int64_t batches = plan.batches[0] * plan.batches[1];
  if (product->rows < 1 || product->columns < 1) return 0;
  if (plan.b_size && dso_op_parallel(pack, &plan, batches * plan.panels, batches * plan.b_size))
    return -1;
  return dso_op_parallel(multiply, &plan, batches * plan.panels * plan.chunks,
                         batches * product->rows * product->inner * product->columns);
}
