/* Pooling: the greatest value or the average of windows of an image.
 *
 * A vector is adjacent channels of a block. In a plane it is adjacent outputs where the stride is 1
 * or 2, and adjacent taps where a window is wide. */
#include <math.h>

#include "image.h"

/* The taps of a window along one dimension that are in the image. */
struct taps {
  int64_t begin, end, first; /* first: where tap `begin` is */
  int64_t counted;           /* in the padded image */
};

static struct taps taps_of(const struct dso_op_pooling *pooling, int d, int64_t position) {
  const int64_t extent = d ? pooling->in.width : pooling->in.height,
                step = max(pooling->dilation[d], 1);
  const int64_t at = position * pooling->stride[d] - pooling->pad[d],
                limit = extent + pooling->pad_after[d];
  if (at >= 0 && at + (pooling->kernel[d] - 1) * step < extent)
    return (struct taps){.end = pooling->kernel[d], .first = at, .counted = pooling->kernel[d]};
  struct taps taps = {.begin = at < 0 ? ceil_div(-at, step) : 0};
  taps.end = at < extent ? min(ceil_div(extent - at, step), pooling->kernel[d]) : 0;
  taps.begin = min(taps.begin, taps.end);
  taps.first = at + taps.begin * step;
  taps.counted = at < limit ? min(ceil_div(limit - at, step), pooling->kernel[d]) : 0;
  return taps;
}

/* By what a sum is divided. */
static float divisor_of(const struct dso_op_pooling *pooling, const struct taps *y,
                        const struct taps *x) {
  const int64_t count =
      pooling->count_padding ? y->counted * x->counted : (y->end - y->begin) * (x->end - x->begin);
  return (float)max(count, 1);
}

INLINE vec join(vec a, vec b, const int is_average) {
  if (is_average) return a + b;
  return greater(b, a);
}

/* One pixel of a block. Sums of rows are added up separately, which is more accurate. */
INLINE void pool_block(const struct dso_op_pooling *pooling, const float *in, const struct taps *y,
                       const struct taps *x, float *out, const int is_average) {
  const int64_t below = max(pooling->dilation[0], 1) * pooling->in.row;
  const int64_t step = max(pooling->dilation[1], 1) * BLOCK;
  const vec nothing = splat(is_average ? 0 : -INFINITY);
  vec all[BLOCK_VECTORS];
  UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++) all[v] = nothing;
  const float *row = in + y->first * pooling->in.row + x->first * BLOCK;
  for (int64_t i = y->begin; i < y->end; i++, row += below) {
    const float *pixel = row;
    vec some[BLOCK_VECTORS];
    UNROLL
    for (int v = 0; v < BLOCK_VECTORS; v++) some[v] = nothing;
    for (int64_t j = x->begin; j < x->end; j++, pixel += step) UNROLL
    for (int v = 0; v < BLOCK_VECTORS; v++)
      some[v] = join(some[v], load(pixel + v * LANES), is_average);
    UNROLL
    for (int v = 0; v < BLOCK_VECTORS; v++) all[v] = join(all[v], some[v], is_average);
  }
  if (is_average) UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++) all[v] /= divisor_of(pooling, y, x);
  UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++) store(out + v * LANES, all[v]);
}

static void pool_blocks(const struct dso_op_pooling *pooling, const float *in, int64_t y,
                        int64_t channels, float *out) {
  const struct taps rows = taps_of(pooling, 0, y);
  for (int64_t i = 0; i < pooling->out.width; i++, out += BLOCK) {
    const struct taps columns = taps_of(pooling, 1, i);
    if (pooling->is_average) pool_block(pooling, in, &rows, &columns, out, 1);
    else pool_block(pooling, in, &rows, &columns, out, 0);
    for (int64_t c = channels; c < BLOCK; c++) out[c] = 0; /* of an empty window too */
  }
}

/* `count` outputs of a row, each joined with the tap that is `step` floats after the one before. */
INLINE void join_row(float *out, const float *in, int64_t count, int64_t step,
                     const int is_average) {
  int64_t i = 0;
  if (step == 1)
    for (; i + LANES <= count; i += LANES)
      store(out + i, join(load(out + i), load(in + i), is_average));
  if (step == 2) /* the last float that is read is before that of another output */
    for (; i + 4 < count; i += 4) {
      const four low = *(const four *)(in + 2 * i), high = *(const four *)(in + 2 * i + 4);
      const four tap = SHUFFLE(low, high, 0, 2, 4, 6), sum = *(const four *)(out + i);
      const four_bits is_more = tap > sum;
      if (is_average) *(four *)(out + i) = sum + tap;
      else *(four *)(out + i) = (four)((is_more & (four_bits)tap) | (~is_more & (four_bits)sum));
    }
  for (; i < count; i++) {
    const float tap = in[i * step];
    out[i] = is_average ? out[i] + tap : tap > out[i] ? tap : out[i];
  }
}

/* A row of outputs: one tap of all windows after the other. */
INLINE void pool_row(const struct dso_op_pooling *pooling, const float *in, const struct taps *rows,
                     float *out, const int is_average) {
  const int64_t width = pooling->out.width, stride = pooling->stride[1];
  const int64_t below = max(pooling->dilation[0], 1) * pooling->in.row;
  for (int64_t x = 0; x < width; x++) out[x] = is_average ? 0 : -INFINITY;
  for (int64_t j = 0; j < pooling->kernel[1]; j++) {
    const int64_t tap = j * max(pooling->dilation[1], 1) - pooling->pad[1]; /* of output 0 */
    const int64_t begin = tap < 0 ? ceil_div(-tap, stride) : 0, after = pooling->in.width - tap;
    const int64_t end = after > 0 ? min(ceil_div(after, stride), width) : 0;
    const float *row = in + rows->first * pooling->in.row + begin * stride + tap;
    for (int64_t i = rows->begin; i < rows->end && begin < end; i++, row += below)
      join_row(out + begin, row, end - begin, stride, is_average);
  }
  for (int64_t x = 0; x < width && is_average; x++) {
    const struct taps columns = taps_of(pooling, 1, x);
    out[x] /= divisor_of(pooling, rows, &columns);
  }
}

/* All floats of a row. */
INLINE vec join_all(const float *in, int64_t count, vec all, const int is_average) {
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) all = join(all, load(in + i), is_average);
  if (i == count) return all;
  return join(all, load_part(in + i, count - i, is_average ? 0 : -INFINITY), is_average);
}

/* The only output of a row, whose window is wide. */
INLINE void pool_wide(const struct dso_op_pooling *pooling, const float *in,
                      const struct taps *rows, const struct taps *columns, float *out,
                      const int is_average) {
  const int64_t below = max(pooling->dilation[0], 1) * pooling->in.row;
  const float *row = in + rows->first * pooling->in.row + columns->first;
  int64_t count = columns->end - columns->begin, height = rows->end - rows->begin;
  vec all = splat(is_average ? 0 : -INFINITY);
  if (below == count) count *= height, height = height > 0; /* rows without a gap */
  for (int64_t i = 0; i < height; i++, row += below) {
    const vec some = join_all(row, count, splat(is_average ? 0 : -INFINITY), is_average);
    all = join(all, some, is_average);
  }
  *out = is_average ? sum_of_lanes(all) / divisor_of(pooling, rows, columns) : greatest_lane(all);
}

static void pool_plane(const struct dso_op_pooling *pooling, const float *in, int64_t y,
                       float *out) {
  const struct taps rows = taps_of(pooling, 0, y), columns = taps_of(pooling, 1, 0);
  if (pooling->out.width == 1 && pooling->dilation[1] <= 1) {
    if (pooling->is_average) pool_wide(pooling, in, &rows, &columns, out, 1);
    else pool_wide(pooling, in, &rows, &columns, out, 0);
  } else if (pooling->is_average) pool_row(pooling, in, &rows, out, 1);
  else pool_row(pooling, in, &rows, out, 0);
}

/* One item: a row of a plane or block. */
static void pool_item(const void *data, int64_t index) {
  const struct dso_op_pooling *pooling = data;
  const struct dso_op_image *out = &pooling->out;
  const int64_t planes = planes_of(out), height = out->height, y = index % height;
  const int64_t batch = index / height / planes, p = index / height % planes;
  const float *in = pooling->in.data + batch * pooling->in.batch + p * pooling->in.plane;
  float *to = out->data + batch * out->batch + p * out->plane + y * out->row;
  const size_t side = (size_t)(out->padding * out->block) * sizeof *to;
  if (out->block == 1) pool_plane(pooling, in, y, to);
  else pool_blocks(pooling, in, y, min(out->channels - p * BLOCK, BLOCK), to);
  memset(to - out->padding * out->block, 0, side);
  memset(to + out->width * out->block, 0, side);
  if (y == 0) {
    struct dso_op_image whole = *out;
    whole.data += batch * out->batch;
    dso_op_write_padding(&whole, p, 0);
  }
}

int dso_op_pooling(const struct dso_op_pooling *pooling) {
  const struct dso_op_image *out = &pooling->out;
  const int64_t items = max(pooling->batch, 1) * planes_of(out) * out->height;
  return dso_op_parallel(pool_item, pooling, items,
                         items * out->width * out->block * pooling->kernel[0] * pooling->kernel[1]);
}
