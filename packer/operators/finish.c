/* After the sums of a tile: bias, residual, activation, and the store in the output's
 * layout. */
#include <string.h>

#include "finish.h"

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
  static const float zeros[PANEL];
  if (after->bias == NULL) return zeros;
  if (outputs == PANEL) return after->bias + first;
  memset(panel, 0, PANEL * sizeof *panel);
  memcpy(panel, after->bias + first, (size_t)outputs * sizeof *panel);
  return panel;
}

/* Whole blocks: from the sums to the output in one pass. */
INLINE void finish_blocks(const struct place *place, const float *sums, const float *bias,
                          const struct position *position, const int blocks, const int has_residual,
                          const int has_bounds) {
  const struct dso_op_after *after = place->after;
  const float low = low_of(after), high = high_of(after);
  for (int y = 0; y < position->rows; y++)
    for (int x = 0; x < position->columns; x++, sums += PANEL)
      for (int b = 0; b < blocks; b++) {
        const int64_t to = position->at + y * place->below + x * place->step + b * place->plane;
        UNROLL
        for (int v = 0; v < BLOCK_VECTORS; v++) {
          const int lane = b * BLOCK + v * LANES;
          vec sum = load(sums + lane) + load(bias + lane);
          if (has_residual) sum += load(after->residual + to + v * LANES);
          if (has_bounds) sum = at_most(at_least(sum, low), high);
          else sum = activated(after, sum);
          store(place->out + to + v * LANES, sum);
        }
      }
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
  const int64_t plane = place->plane;
  for (int y = 0; y < rows; y++, out += place->below, sums += columns * PANEL) {
    int x = 0;
    for (; x + 4 <= columns; x += 4) {
      int64_t o = 0;
      for (; o + 4 <= outputs; o += 4)
        transpose(sums + x * PANEL + o, PANEL, out + o * plane + x, plane);
      for (; o < outputs; o++)
        for (int p = x; p < x + 4; p++) out[o * plane + p] = sums[p * PANEL + o];
    }
    for (; x < columns; x++)
      for (int64_t o = 0; o < outputs; o++) out[o * plane + x] = sums[x * PANEL + o];
  }
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

/* The last outputs, which do not fill a block. */
static void finish_part(const struct place *place, float *sums, const float *bias, int rows,
                        int columns, int64_t outputs, int64_t at) {
  const struct dso_op_after *after = place->after;
  const int64_t last = outputs - BLOCK; /* in the second block of the panel */
  for (int p = 0; p < rows * columns && after->residual != NULL; p++) {
    const float *from =
        after->residual + at + p / columns * place->below + p % columns * place->step;
    add_block(sums + p * PANEL, from, min(outputs, BLOCK));
    if (last > 0) add_block(sums + p * PANEL + BLOCK, from + place->plane, last);
  }
  finish(after, bias, sums, rows * columns, ceil_div(outputs, LANES));
  for (int p = 0; p < rows * columns; p++) {
    float *to = place->out + at + p / columns * place->below + p % columns * place->step;
    store_block(to, sums + p * PANEL, min(outputs, BLOCK), place->is_padded);
    if (last > 0) store_block(to + place->plane, sums + p * PANEL + BLOCK, last, place->is_padded);
  }
}

void dso_op_finish(const struct place *place, const struct position *position, int64_t outputs,
                   float *sums) {
  const struct dso_op_after *after = place->after;
  const int rows = position->rows, columns = position->columns, blocks = (int)(outputs / BLOCK);
  const int64_t at = position->at;
  float panel[PANEL];
  const float *bias = bias_of(after, place->first, outputs, panel);
  if (place->is_planar) {
    if (after->residual != NULL)
      add_planar(place, sums, rows, columns, outputs, after->residual + at);
    finish(after, bias, sums, rows * columns, ceil_div(outputs, LANES));
    store_planar(place, sums, rows, columns, outputs, place->out + at);
  } else if (outputs % BLOCK) {
    finish_part(place, sums, bias, rows, columns, outputs, at);
  } else if (!is_bounded(after)) {
    finish_blocks(place, sums, bias, position, blocks, after->residual != NULL, 0);
  } else if (after->residual != NULL) {
    finish_blocks(place, sums, bias, position, blocks, 1, 1);
  } else {
    finish_blocks(place, sums, bias, position, blocks, 0, 1);
  }
}
