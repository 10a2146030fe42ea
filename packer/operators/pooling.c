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
  if (step <= 2) /* with step 2 the last float that is read is before that of another output */
    for (; i + 4 < count + (step == 1); i += 4) {
      const four low = *(const four *)(in + step * i), sum = *(const four *)(out + i);
      four tap = low;
      if (step == 2) tap = SHUFFLE(low, *(const four *)(in + 2 * i + 4), 0, 2, 4, 6);
      const four_bits is_more = tap > sum;
      if (is_average) *(four *)(out + i) = sum + tap;
      else *(four *)(out + i) = (four)((is_more & (four_bits)tap) | (~is_more & (four_bits)sum));
    }
  for (; i < count; i++) {
    const float tap = in[i * step];
    out[i] = is_average ? out[i] + tap : tap > out[i] ? tap : out[i];
  }
}

/* Some outputs of a row: one tap of all windows after the other. */
INLINE void pool_row(const struct dso_op_pooling *pooling, const float *in, const struct taps *rows,
                     int64_t first, int64_t last, float *out, const int is_average) {
  const int64_t stride = pooling->stride[1];
  const int64_t below = max(pooling->dilation[0], 1) * pooling->in.row;
  for (int64_t x = first; x < last; x++) out[x] = is_average ? 0 : -INFINITY;
  for (int64_t j = 0; j < pooling->kernel[1]; j++) {
    const int64_t tap = j * max(pooling->dilation[1], 1) - pooling->pad[1]; /* of output 0 */
    const int64_t begin = max(tap < 0 ? ceil_div(-tap, stride) : 0, first);
    const int64_t after = pooling->in.width - tap;
    const int64_t end = after > 0 ? min(ceil_div(after, stride), last) : 0;
    const float *row = in + rows->first * pooling->in.row + begin * stride + tap;
    for (int64_t i = rows->begin; i < rows->end && begin < end; i++, row += below)
      join_row(out + begin, row, end - begin, stride, is_average);
  }
  for (int64_t x = first; x < last && is_average; x++) {
    const struct taps columns = taps_of(pooling, 1, x);
    out[x] /= divisor_of(pooling, rows, &columns);
  }
}

/* Outputs with all taps in the image, with a stride of 1; at least a vector of them. */
INLINE void pool_inside(const struct dso_op_pooling *pooling, const float *in,
                        const struct taps *rows, int64_t first, int64_t last, float *out,
                        const int is_average) {
  const int64_t below = max(pooling->dilation[0], 1) * pooling->in.row;
  const struct taps columns = taps_of(pooling, 1, first);
  in += rows->first * pooling->in.row - pooling->pad[1];
  for (int64_t x = first; x < last; x += LANES) {
    const int64_t at = min(x, last - LANES);
    vec all = splat(is_average ? 0 : -INFINITY);
    for (int64_t j = 0; j < columns.end; j++) {
      const float *tap = in + at + j * max(pooling->dilation[1], 1);
      for (int64_t i = rows->begin; i < rows->end; i++, tap += below)
        all = join(all, load(tap), is_average);
    }
    if (is_average) all /= divisor_of(pooling, rows, &columns);
    store(out + at, all);
  }
}

INLINE void pool_plain(const struct dso_op_pooling *pooling, const float *in,
                       const struct taps *rows, float *out, const int is_average) {
  const int64_t width = pooling->out.width, pad = pooling->pad[1];
  const int64_t reach = (pooling->kernel[1] - 1) * max(pooling->dilation[1], 1);
  const int64_t end = min(pooling->in.width - reach + pad, width);
  if (pooling->stride[1] != 1 || end - pad < LANES) {
    pool_row(pooling, in, rows, 0, width, out, is_average);
    return;
  }
  if (pad > 0) pool_row(pooling, in, rows, 0, pad, out, is_average);
  pool_inside(pooling, in, rows, pad, end, out, is_average);
  if (end < width) pool_row(pooling, in, rows, end, width, out, is_average);
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
  } else if (pooling->is_average) pool_plain(pooling, in, &rows, out, 1);
  else pool_plain(pooling, in, &rows, out, 0);
}

/* How many rows of a plane or block are one item. */
static int64_t rows_at_once(const struct dso_op_pooling *pooling) {
  enum { AT_ONCE = 1024 }; /* outputs */
  const struct dso_op_image *out = &pooling->out;
  return max(min(AT_ONCE / max(out->width * out->block, 1), out->height), 1);
}

/* One item: some rows of a plane or block. */
static void pool_item(const void *data, int64_t index) {
  const struct dso_op_pooling *pooling = data;
  const struct dso_op_image *out = &pooling->out;
  const int64_t count = rows_at_once(pooling), parts = ceil_div(out->height, count);
  const int64_t planes = planes_of(out), begin = index % parts * count;
  const int64_t batch = index / parts / planes, p = index / parts % planes;
  const float *in = pooling->in.data + batch * pooling->in.batch + p * pooling->in.plane;
  float *plane = out->data + batch * out->batch + p * out->plane;
  const size_t side = (size_t)(out->padding * out->block) * sizeof *plane;
  for (int64_t y = begin; y < min(begin + count, out->height); y++) {
    float *to = plane + y * out->row;
    if (out->block == 1) pool_plane(pooling, in, y, to);
    else pool_blocks(pooling, in, y, min(out->channels - p * BLOCK, BLOCK), to);
    if (side == 0) continue;
    memset(to - out->padding * out->block, 0, side);
    memset(to + out->width * out->block, 0, side);
  }
  if (begin == 0) {
    struct dso_op_image whole = *out;
    whole.data += batch * out->batch;
    dso_op_write_padding(&whole, p, 0);
  }
}

int dso_op_pooling(const struct dso_op_pooling *pooling) {
  const struct dso_op_image *out = &pooling->out;
  const int64_t planes = max(pooling->batch, 1) * planes_of(out);
  return dso_op_parallel(pool_item, pooling, planes * ceil_div(out->height, rows_at_once(pooling)),
                         planes * out->height * out->width * out->block * pooling->kernel[0] *
                             pooling->kernel[1]);
}
