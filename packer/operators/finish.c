/* After the sums of a tile: bias, residual, activation, and the store in the output's
 * layout. */
#include <string.h>

#include "parts.h"

INLINE vec activated(const struct dso_op_after *after, vec x) {
  switch (after->activation) {
    case DSO_OP_RELU: return at_least(x, 0);
    case DSO_OP_CLIP: return at_most(at_least(x, after->low), after->high);
    case DSO_OP_GELU: return x * 0.5f * (vec_erf(x * 0.707106781f) + 1.0f);
    case DSO_OP_GELU_TANH: {
      const vec twice = x * (x * x * 0.0713548163f + 1.59576912f); /* 2 sqrt(2 / pi) (x + ...) */
      return x / (vec_exp(-twice) + 1.0f);
    }
    case DSO_OP_NONE: break;
  }
  return x;
}

/* The vectors of a tile in one loop. `bias` has a panel of values. */
static void finish(const struct dso_op_after *after, const float *bias, float *sums, int pixels,
                   int64_t vectors) {
  for (int p = 0; p < pixels; p++, sums += PANEL)
    for (int64_t v = 0; v < vectors; v++)
      store(sums + v * LANES, activated(after, load(sums + v * LANES) + load(bias + v * LANES)));
}

/* A panel of bias; zeros where it ends, so that nothing after it is read. */
static const float *bias_of(const struct dso_op_after *after, int64_t first, int64_t outputs,
                            float *panel) {
  if (after->bias != NULL && outputs == PANEL) return after->bias + first;
  memset(panel, 0, PANEL * sizeof *panel);
  if (after->bias != NULL) memcpy(panel, after->bias + first, (size_t)outputs * sizeof *panel);
  return panel;
}

/* Outputs in planes: the residual is read, and the result written, pixel by pixel of each plane. */
static void add_planar(const struct place *place, float *sums, int rows, int columns,
                       int64_t outputs, const float *residual) {
  for (int64_t o = 0; o < outputs; o++, residual += place->plane)
    for (int y = 0; y < rows; y++)
      for (int x = 0; x < columns; x++)
        sums[(y * columns + x) * PANEL + o] += residual[y * place->below + x];
}

static void store_planar(const struct place *place, const float *sums, int rows, int columns,
                         int64_t outputs, float *out) {
  for (int64_t o = 0; o < outputs; o++, out += place->plane)
    for (int y = 0; y < rows; y++)
      for (int x = 0; x < columns; x++)
        out[y * place->below + x] = sums[(y * columns + x) * PANEL + o];
}

static void add_block(float *sums, const float *residual, int64_t count) {
  if (count == BLOCK) UNROLL
  for (int v = 0; v < BLOCK_VECTORS; v++)
    store(sums + v * LANES, load(sums + v * LANES) + load(residual + v * LANES));
  else for (int64_t c = 0; c < count; c++) sums[c] += residual[c]; }

static void store_block(float *out, const float *sums, int64_t count, int is_padded) {
  if (count == BLOCK) {
    UNROLL
    for (int v = 0; v < BLOCK_VECTORS; v++) store(out + v * LANES, load(sums + v * LANES));
    return;
  }
  memcpy(out, sums, (size_t)count * sizeof *out);
  if (is_padded) memset(out + count, 0, (size_t)(BLOCK - count) * sizeof *out);
}

void dso_op_finish(const struct place *place, float *sums, int rows, int columns, int64_t first,
                   int64_t outputs, int64_t at) {
  const struct dso_op_after *after = place->after;
  const int pixels = rows * columns;
  const int64_t last = outputs - BLOCK; /* in the second block of the panel */
  float panel[PANEL];
  const float *bias = bias_of(after, first, outputs, panel);
  const float *residual = after->residual != NULL ? after->residual + at : NULL;

  if (residual != NULL && place->is_planar)
    add_planar(place, sums, rows, columns, outputs, residual);
  else if (residual != NULL)
    for (int p = 0; p < pixels; p++) {
      const float *from = residual + p / columns * place->below + p % columns * place->step;
      add_block(sums + p * PANEL, from, least(outputs, BLOCK));
      if (last > 0) add_block(sums + p * PANEL + BLOCK, from + place->plane, last);
    }
  if (after->bias != NULL || after->activation != DSO_OP_NONE)
    finish(after, bias, sums, pixels, up(outputs, LANES));

  float *out = place->out + at;
  if (place->is_planar) {
    store_planar(place, sums, rows, columns, outputs, out);
    return;
  }
  for (int p = 0; p < pixels; p++) {
    float *to = out + p / columns * place->below + p % columns * place->step;
    store_block(to, sums + p * PANEL, least(outputs, BLOCK), place->is_padded);
    if (last > 0) store_block(to + place->plane, sums + p * PANEL + BLOCK, last, place->is_padded);
  }
}
