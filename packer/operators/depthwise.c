/* Depthwise convolutions: a vector is adjacent channels, each with its own weight. */
#include "finish.h"
#include "window.h"

enum { MOST = LANES == 16 ? 7 : LANES == 8 ? 4 : 2 }; /* pixels; networks are 7 * 2^n wide */

/* One row of one block of channels. */
struct row {
  const struct dso_op_conv2d *conv;
  const float *weight;
  int64_t taps, after;   /* along the depth, and to the next of them */
  int64_t below, beside; /* to the next taps */
  int64_t step;          /* to the next pixel */
  int is_direct;         /* whole blocks are stored in blocks, and bounded: `out` is written here */
  float bias[BLOCK], low, high;
  const float *residual;
  float *out;
};

/* The sums of some adjacent pixels, finished and stored, or in `sums`. `step` is a constant where
 * it is known. */
INLINE void sum_up(const struct row *row, const float *data, int64_t x, float *sums,
                   const int64_t step, const int pixels) {
  const struct dso_op_conv2d *conv = row->conv;
  const float *weight = row->weight;
  vec sum[MOST][BLOCK_VECTORS];
  data += x * step;
  UNROLL
  for (int p = 0; p < pixels; p++) UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++) sum[p][v] = splat(0);
  for (int64_t z = 0; z < row->taps; z++, data += row->after) {
    const float *line = data;
    for (int64_t i = 0; i < conv->kernel[0]; i++, line += row->below) {
      const float *pixel = line;
      for (int64_t j = 0; j < conv->kernel[1]; j++, weight += BLOCK, pixel += row->beside) UNROLL
      for (int v = 0; v < BLOCK_VECTORS; v++) {
        const vec factor = load(weight + v * LANES);
        UNROLL
        for (int p = 0; p < pixels; p++) sum[p][v] += factor * load(pixel + p * step + v * LANES);
      }
    }
  }
  if (!row->is_direct) {
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < BLOCK_VECTORS; v++) store(sums + p * PANEL + v * LANES, sum[p][v]);
    return;
  }
  UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++) {
    const vec bias = load(row->bias + v * LANES);
    UNROLL
    for (int p = 0; p < pixels; p++) {
      const int64_t to = (x + p) * BLOCK + v * LANES;
      sum[p][v] += bias;
      if (row->residual != NULL) sum[p][v] += load(row->residual + to);
      store(row->out + to, at_most(at_least(sum[p][v], row->low), row->high));
    }
  }
}

/* As many pixels as there are registers for, at most `left`. */
INLINE int some_pixels(const struct row *row, const float *data, int64_t x, float *sums,
                       const int64_t step, int64_t left) {
  if (left >= MOST) return sum_up(row, data, x, sums, step, MOST), MOST;
  if (MOST > 4 && left >= 4) return sum_up(row, data, x, sums, step, 4), 4;
  if (MOST > 2 && left >= 2) return sum_up(row, data, x, sums, step, 2), 2;
  return sum_up(row, data, x, sums, step, 1), 1;
}

/* One row of outputs, with the padding on its two sides. */
static void convolve_row(struct row *row, const struct place *place, const float *data, int64_t at,
                         int64_t outputs) {
  const struct dso_op_image *out = &row->conv->out;
  const int64_t step = row->step, side = out->padding * out->block;
  struct position position = {.rows = 1, .at = at};
  if (row->is_direct) {
    row->out = out->data + at;
    if (place->after->residual != NULL) row->residual = place->after->residual + at;
  }
  for (int64_t x = 0; x < out->width;
       x += position.columns, position.at += position.columns * out->block) {
    _Alignas(64) float sums[MOST * PANEL];
    const int64_t left = out->width - x;
    if (step == BLOCK) position.columns = some_pixels(row, data, x, sums, BLOCK, left);
    else if (step == 2 * BLOCK) position.columns = some_pixels(row, data, x, sums, 2 * BLOCK, left);
    else position.columns = some_pixels(row, data, x, sums, step, left);
    if (!row->is_direct) dso_op_finish(place, &position, outputs, sums);
  }
  for (int64_t p = 0; p < (out->block == 1 ? outputs : 1); p++) {
    float *to = out->data + at + p * out->plane;
    clear(to - side, side);
    clear(to + out->width * out->block, side);
  }
}

void dso_op_depthwise(const struct dso_op_conv2d *conv, const struct dso_op_image *in,
                      const float *data, const struct taps *taps, int64_t batch, int64_t block,
                      int64_t y, int64_t end) {
  const struct dso_op_image *out = &conv->out;
  const int64_t before = block * max(conv->depth.kernel, 1) + taps->begin;
  const int64_t first = block * BLOCK, outputs = min(out->channels - first, BLOCK);
  const int64_t plane = batch * out->batch + first / out->block * out->plane;
  const struct place place = place_of(conv, first);
  struct row row = {.conv = conv,
                    .weight = (const float *)conv->weight +
                              before * conv->kernel[0] * conv->kernel[1] * BLOCK,
                    .taps = taps->end - taps->begin,
                    .after = conv->depth.dilation * in->batch,
                    .below = conv->dilation[0] * in->row,
                    .beside = conv->dilation[1] * BLOCK,
                    .step = conv->stride[1] * BLOCK,
                    .low = low_of(place.after),
                    .high = high_of(place.after)};
  row.is_direct = out->block == BLOCK && outputs == BLOCK && is_bounded(place.after);
  if (row.is_direct && place.after->bias != NULL)
    memcpy(row.bias, place.after->bias + first, sizeof row.bias);
  for (; y < end; y++)
    convolve_row(&row, &place, data + y * conv->stride[0] * in->row, plane + y * out->row, outputs);
}
