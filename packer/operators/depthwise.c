/* Depthwise convolutions: a vector is adjacent channels, each with its own weight. */
#include "window.h"

/* The sums of some adjacent pixels; `step` to the next one is a constant where it is known. */
INLINE void sum_up(const struct dso_op_conv2d *conv, const struct dso_op_picture *in,
                   const float *data, const float *weight, float *sums, const int64_t step,
                   const int pixels) {
  vec sum[7][BLOCK_VECTORS];
  UNROLL
  for (int p = 0; p < pixels; p++) UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++) sum[p][v] = splat(0);
  for (int64_t y = 0; y < conv->kernel[0]; y++)
    for (int64_t x = 0; x < conv->kernel[1]; x++, weight += BLOCK) {
      const float *pixel = data + y * conv->dilation[0] * in->row + x * conv->dilation[1] * BLOCK;
      UNROLL
      for (int v = 0; v < BLOCK_VECTORS; v++) {
        const vec factor = load(weight + v * LANES);
        UNROLL
        for (int p = 0; p < pixels; p++) sum[p][v] += factor * load(pixel + p * step + v * LANES);
      }
    }
  UNROLL
  for (int p = 0; p < pixels; p++) UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++) store(sums + p * PANEL + v * LANES, sum[p][v]);
}

/* As many pixels as there are registers for, at most `left`. */
INLINE int some_pixels(const struct dso_op_conv2d *conv, const struct dso_op_picture *in,
                       const float *data, const float *weight, float *sums, const int64_t step,
                       int64_t left) {
  enum { MOST = LANES == 16 ? 7 : LANES == 8 ? 4 : 2 }; /* networks are 7 * 2^n wide */
  if (left >= MOST) return sum_up(conv, in, data, weight, sums, step, MOST), MOST;
  if (MOST > 4 && left >= 4) return sum_up(conv, in, data, weight, sums, step, 4), 4;
  if (MOST > 2 && left >= 2) return sum_up(conv, in, data, weight, sums, step, 2), 2;
  return sum_up(conv, in, data, weight, sums, step, 1), 1;
}

void dso_op_depthwise(const struct dso_op_conv2d *conv, const struct dso_op_picture *in,
                      const float *data, int64_t batch, int64_t block, int64_t y) {
  const struct dso_op_picture *out = &conv->out;
  const int64_t step = conv->stride[1] * BLOCK, first = block * BLOCK;
  const float *weight = conv->weight + block * conv->kernel[0] * conv->kernel[1] * BLOCK;
  const struct place place = place_of(conv);
  const int64_t at = batch * out->batch + first / out->block * out->plane + y * out->row;
  data += y * conv->stride[0] * in->row;
  int count;
  for (int64_t x = 0; x < out->width; x += count) {
    _Alignas(64) float sums[7 * PANEL];
    const float *pixel = data + x * step;
    const int64_t left = out->width - x;
    if (step == BLOCK) count = some_pixels(conv, in, pixel, weight, sums, BLOCK, left);
    else if (step == 2 * BLOCK) count = some_pixels(conv, in, pixel, weight, sums, 2 * BLOCK, left);
    else count = some_pixels(conv, in, pixel, weight, sums, step, left);
    dso_op_finish(&place, sums, 1, count, first, least(out->channels - first, BLOCK),
                  at + x * out->block);
  }
}
