/* Rows by their mean and variance, by their size, or by the sum of their exponentials.
 *
 * A row is read two or three times, and stays in a near cache. Its mean is subtracted before the
 * squares are added, so that a large mean costs no accuracy. Long sums are added up from parts in
 * double precision. */
#include "elementwise.h"

enum { PART = 2048, SUMS = 4 }; /* floats that are added in float32, in so many vectors */

INLINE vec term(vec y, const int is_squared) {
  if (is_squared) return y * y;
  return y;
}

/* The sum of x - less, or of its squares. */
INLINE double total(const float *x, int64_t size, const float less, const int is_squared) {
  double all = 0;
  for (int64_t begin = 0; begin < size; begin += PART) {
    const int64_t end = min(begin + PART, size);
    vec sum[SUMS] = {splat(0), splat(0), splat(0), splat(0)};
    int64_t i = begin;
    for (; i + SUMS * LANES <= end; i += SUMS * LANES) UNROLL
    for (int v = 0; v < SUMS; v++) {
      const vec y = load(x + i + v * LANES) - less;
      sum[v] += term(y, is_squared);
    }
    for (; i < end; i += LANES) {
      const vec y = (i + LANES <= end ? load(x + i) : load_part(x + i, end - i, less)) - less;
      sum[0] += term(y, is_squared);
    }
    all += (double)sum_of_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
  }
  return all;
}

/* out = (x * factor + shift) * scale + bias */
INLINE void adjust(const struct dso_op_normalize *rows, const float *x, float *out, float less,
                   float factor, float shift, const int has_scale, const int has_bias) {
  int64_t i = 0;
  for (; i + LANES <= rows->size; i += LANES) {
    vec y = (load(x + i) - less) * factor + shift;
    if (has_scale) y *= load(rows->scale + i);
    if (has_bias) y += load(rows->bias + i);
    store(out + i, y);
  }
  if (i == rows->size) return;
  const int64_t count = rows->size - i;
  vec y = (load_part(x + i, count, 0) - less) * factor + shift;
  if (has_scale) y *= load_part(rows->scale + i, count, 0);
  if (has_bias) y += load_part(rows->bias + i, count, 0);
  store_part(out + i, count, y);
}

static void scale_and_move(const struct dso_op_normalize *rows, const float *x, float *out) {
  const double size = (double)rows->size;
  double square, rest = 0;
  float mean = 0;
  if (rows->kind == DSO_OP_LAYER) {
    mean = (float)(total(x, rows->size, 0, 0) / size);
    rest = total(x, rows->size, mean, 0) / size; /* what the mean lost as a float */
    square = total(x, rows->size, mean, 1) / size - rest * rest;
  } else {
    square = total(x, rows->size, 0, 1) / size;
  }
  const double factor = inverse_root(square + (double)rows->epsilon);
  const float scale = (float)factor, shift = (float)(-rest * factor);
  if (rows->scale && rows->bias) adjust(rows, x, out, mean, scale, shift, 1, 1);
  else if (rows->scale) adjust(rows, x, out, mean, scale, shift, 1, 0);
  else if (rows->bias) adjust(rows, x, out, mean, scale, shift, 0, 1);
  else adjust(rows, x, out, mean, scale, shift, 0, 0);
}

static float greatest(const float *x, int64_t size) {
  vec max_of[SUMS];
  UNROLL
  for (int v = 0; v < SUMS; v++) max_of[v] = splat(x[0]);
  int64_t i = 0;
  for (; i + SUMS * LANES <= size; i += SUMS * LANES) UNROLL
  for (int v = 0; v < SUMS; v++) max_of[v] = greater(load(x + i + v * LANES), max_of[v]);
  for (; i < size; i += LANES)
    max_of[0] =
        greater(i + LANES <= size ? load(x + i) : load_part(x + i, size - i, x[0]), max_of[0]);
  return greatest_lane(greater(greater(max_of[0], max_of[1]), greater(max_of[2], max_of[3])));
}

/* The exponentials of x - less, stored or not, and their sum. */
INLINE double exponentials(const float *x, float *out, int64_t size, float less,
                           const int is_stored) {
  double all = 0;
  for (int64_t begin = 0; begin < size; begin += PART) {
    const int64_t end = min(begin + PART, size);
    vec sum = splat(0);
    int64_t i = begin;
    for (; i + LANES <= end; i += LANES) {
      const vec y = vec_exp_below(load(x + i) - less);
      if (is_stored) store(out + i, y);
      sum += y;
    }
    if (i < end) { /* the exponential of -inf is 0 */
      const vec y = vec_exp_below(load_part(x + i, end - i, -INFINITY) - less);
      if (is_stored) store_part(out + i, end - i, y);
      sum += y;
    }
    all += (double)sum_of_lanes(sum);
  }
  return all;
}

static void softmax(const float *x, float *out, int64_t size) {
  const double sum = exponentials(x, out, size, greatest(x, size), 1);
  const float factor = (float)(1 / sum);
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES) store(out + i, load(out + i) * factor);
  for (; i < size; i++) out[i] *= factor;
}

static void log_softmax(const float *x, float *out, int64_t size) {
  const float less = greatest(x, size);
  const float log = each_log(splat((float)exponentials(x, out, size, less, 0)))[0];
  int64_t i = 0;
  for (; i + LANES <= size; i += LANES) store(out + i, load(x + i) - less - log);
  for (; i < size; i++) out[i] = x[i] - less - log;
}

/* One item: some rows. */
static void normalize(const void *data, int64_t index) {
  const struct dso_op_normalize *rows = data;
  const int64_t count = max(PART / rows->size, 1), end = min((index + 1) * count, rows->rows);
  for (int64_t row = index * count; row < end; row++) {
    const float *x = rows->x + row * rows->x_row;
    float *out = rows->out + row * rows->out_row;
    if (rows->kind == DSO_OP_SOFTMAX) softmax(x, out, rows->size);
    else if (rows->kind == DSO_OP_LOG_SOFTMAX) log_softmax(x, out, rows->size);
    else scale_and_move(rows, x, out);
  }
}

int dso_op_normalize(const struct dso_op_normalize *rows) {
  enum { WORK = 12 }; /* multiplications that take as long as one float */
  if (rows->size < 1) return 0;
  return dso_op_parallel(normalize, rows, ceil_div(rows->rows, max(PART / rows->size, 1)),
                         rows->rows * rows->size * WORK);
}
