/* Matrix products of doubles: a part of a panel of columns is packed, then multiplied by some rows
 * at a time. */
#include "parts.h"

enum {
  WIDTH = LANES / 2,   /* doubles in a vector */
  COLUMNS = 2 * WIDTH, /* of a panel */
  ROWS = PIXELS < 12 ? PIXELS : 12,
  CHUNK = 16 * ROWS, /* of one item */
  DEPTH = 192,       /* inputs of a part, which stays in the nearest cache */
  AHEAD = 16,        /* inputs */
};
typedef double doubles __attribute__((vector_size(4 * LANES), aligned(8), may_alias));

/* The view of a product that its items use. */
struct plan {
  const struct dso_op_double_matmul *product;
  int64_t batches[2], panels, chunks; /* of one product */
};

/* Some rows of a panel; `is_more`: add to `out`. */
INLINE void multiply_rows(const struct dso_op_double_matmul *product, const double *a,
                          const double *b, int64_t b_row, int64_t depth, int is_more, double *out,
                          int64_t out_row, const int rows) {
  const int64_t a_row = product->a_row, a_column = product->a_column;
  doubles sum[ROWS][2];
  UNROLL
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (doubles){0};
  if (is_more) UNROLL
  for (int r = 0; r < rows; r++) memcpy(sum[r], out + r * out_row, sizeof sum[r]);
  for (int64_t k = 0; k < depth; k++, a += a_column, b += b_row) {
    const doubles low = *(const doubles *)b, high = *(const doubles *)(b + WIDTH);
    UNROLL
    for (int r = 0; r < rows; r++) {
      sum[r][0] += a[r * a_row] * low;
      sum[r][1] += a[r * a_row] * high;
    }
  }
  UNROLL
  for (int r = 0; r < rows; r++) memcpy(out + r * out_row, sum[r], sizeof sum[r]);
}

/* All rows of an item by a part of a panel. */
static void multiply_part(const struct dso_op_double_matmul *product, const double *a, int64_t rows,
                          const double *b, int64_t b_row, int64_t depth, int is_more, double *out,
                          int64_t out_row) {
  int64_t done;
  for (int64_t left = rows; left > 0; left -= done) {
    done = left >= ROWS ? ROWS : left >= 4 ? 4 : left >= 2 ? 2 : 1;
    if (done == ROWS) multiply_rows(product, a, b, b_row, depth, is_more, out, out_row, ROWS);
    else if (done == 4) multiply_rows(product, a, b, b_row, depth, is_more, out, out_row, 4);
    else if (done == 2) multiply_rows(product, a, b, b_row, depth, is_more, out, out_row, 2);
    else multiply_rows(product, a, b, b_row, depth, is_more, out, out_row, 1);
    a += done * product->a_row, out += done * out_row;
  }
}

/* A part of a panel, with zeros for the columns that are missing. */
static void pack(const double *b, int64_t row, int64_t column, int64_t depth, int64_t columns,
                 double *to) {
  for (int64_t k = 0; k < depth; k++, b += row, to += COLUMNS) {
    __builtin_prefetch(b + AHEAD * row); /* rows are far apart, so that processors do not */
    __builtin_prefetch(b + AHEAD * row + WIDTH);
    for (int64_t j = 0; j < COLUMNS; j++) to[j] = j < columns ? b[j * column] : 0;
  }
}

/* One item: a panel of columns for a chunk of rows. */
static void multiply(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_double_matmul *product = plan->product;
  const int64_t parts = plan->chunks * plan->panels, batch = index / parts;
  const int64_t chunk = index % parts / plan->panels, column = index % plan->panels * COLUMNS;
  const int64_t columns = min(product->columns - column, COLUMNS);
  const int64_t begin = part_begin(product->rows, plan->chunks, chunk);
  const int64_t rows = part_begin(product->rows, plan->chunks, chunk + 1) - begin;
  const double *a =
      product->a + offset(plan->batches, product->a_batch, batch) + begin * product->a_row;
  const double *b =
      product->b + offset(plan->batches, product->b_batch, batch) + column * product->b_column;
  double *const out = product->out + offset(plan->batches, product->out_batch, batch) +
                      begin * product->out_row + column;
  double packed[DEPTH * COLUMNS], edge[CHUNK * COLUMNS];
  double *const to = columns < COLUMNS ? edge : out;
  const int64_t to_row = columns < COLUMNS ? COLUMNS : product->out_row;
  const int is_packed = columns < COLUMNS || product->b_column != 1 || rows > ROWS;
  for (int64_t first = 0; first == 0 || first < product->inner; first += DEPTH) {
    const int64_t depth = min(product->inner - first, DEPTH);
    const double *from = b + first * product->b_row;
    if (is_packed) pack(from, product->b_row, product->b_column, depth, columns, packed);
    const int64_t b_row = is_packed ? COLUMNS : product->b_row;
    if (is_packed) from = packed;
    multiply_part(product, a + first * product->a_column, rows, from, b_row, depth, first > 0, to,
                  to_row);
  }
  for (int64_t r = 0; r < rows && to == edge; r++)
    memcpy(out + r * product->out_row, edge + r * COLUMNS, (size_t)columns * sizeof *out);
}

int dso_op_double_matmul(const struct dso_op_double_matmul *product) {
  if (product->rows < 1 || product->columns < 1) return 0;
  struct plan plan = {.product = product};
  for (int d = 0; d < 2; d++) plan.batches[d] = max(product->batch[d], 1);
  plan.panels = ceil_div(product->columns, COLUMNS);
  plan.chunks = ceil_div(product->rows, CHUNK);
  const int64_t batches = plan.batches[0] * plan.batches[1];
  return dso_op_parallel(multiply, &plan, batches * plan.panels * plan.chunks,
                         batches * product->rows * product->inner * product->columns);
}
