/* After the sums of a tile of low-precision elements: zeros, scale, activation, rounding and the store. */
#include "finish.h"
#include "lowp.h"

void dso_op_lowp_zeros(struct lowp_zeros *zeros, const int32_t *column_sums, int64_t inner,
                       int32_t a_zero, const void *b_zero, int64_t b_zero_step,
                       enum dso_op_type b_type, const int32_t *bias, int64_t first,
                       int64_t outputs) {
  const int32_t moved = b_type == DSO_OP_UINT8 ? 128 : 0;
  const uint32_t a = (uint32_t)a_zero;
  zeros->has_factor = 0;
  for (int64_t j = 0; j < PANEL; j++) {
    const int64_t at = first + min(j, outputs - 1);
    const int32_t b = integer_at(b_zero, b_type, at * b_zero_step) - moved;
    zeros->added[j] = (bias == NULL ? 0 : (uint32_t)bias[at]) - a * (uint32_t)column_sums[j] +
                      (uint32_t)inner * a * (uint32_t)b;
    zeros->factor[j] = 0 - (uint32_t)b;
    zeros->has_factor |= b != 0;
  }
}

/* Modulo 2^32. */
INLINE words sum_of(words a, words b) { return (words)((bits)a + (bits)b); }

/* The scale of each output of a panel. */
static void scales_of(const struct lowp_place *place, int64_t outputs, float *scale) {
  const struct dso_op_rescale *after = place->after;
  for (int64_t j = 0; j < PANEL; j++)
    scale[j] = after->scale == NULL
                   ? 1
                   : after->scale[(place->first + min(j, outputs - 1)) * after->scale_step];
}

/* Sums as float32, multiplied by the scale. */
static void scale_sums(const struct lowp_place *place, int pixels, int64_t outputs, int32_t *sums) {
  const struct dso_op_rescale *after = place->after;
  const int is_integer = place->zeros != NULL;
  if (!is_integer && after->scale == NULL) return;
  float scale[PANEL];
  scales_of(place, outputs, scale);
  for (int p = 0; p < pixels; p++, sums += PANEL)
    for (int v = 0; v < PANEL; v += LANES) {
      const words sum = *(const words *)(sums + v);
      const vec value = is_integer ? __builtin_convertvector(sum, vec) : (vec)sum;
      store((float *)(void *)(sums + v), value * load(scale + v));
    }
}

static float *floats_of(int32_t *sums) { return (float *)(void *)sums; }

/* Results of 8 bits of integer sums, one byte for each: all steps in one pass. */
static void round_sums(const struct lowp_place *place, int pixels, int64_t outputs,
                       const int32_t *sums, uint8_t *bytes) {
  const struct dso_op_after *after = &place->after->after;
  const int32_t zero = integer_at(place->after->zero, place->type, 0);
  const int32_t min_value = place->type == DSO_OP_INT8 ? -128 : 0;
  const float first = (float)(min_value - zero), last = (float)(min_value + 255 - zero);
  const float low = low_of(after) > first ? low_of(after) : first;
  const float high = high_of(after) < last ? high_of(after) : last;
  float scale[PANEL];
  scales_of(place, outputs, scale);
  for (int v = 0; v < PANEL; v += LANES) {
    const words added = words_at(place->zeros->added + v);
    const vec factor = load(scale + v);
    for (int i = v; i < pixels * PANEL; i += PANEL) {
      const vec sum = __builtin_convertvector(sum_of(words_at(sums + i), added), vec);
      store_bytes(bytes + i, nearest(at_most(at_least(sum * factor, low), high)) + zero);
    }
  }
}

/* To bfloat16: the nearest, ties to even. */
static void round_to_bfloat16(const float *sums, int count, uint16_t *rounded) {
  for (int i = 0; i < count; i++) {
    uint32_t number;
    memcpy(&number, sums + i, sizeof number);
    if (sums[i] != sums[i]) rounded[i] = (uint16_t)(number >> 16 | 0x40);
    else rounded[i] = (uint16_t)((number + 0x7fff + (number >> 16 & 1)) >> 16);
  }
}

/* Copy results of `size` bytes, [pixels][PANEL], to their places. */
INLINE void store_results(const struct lowp_place *place, const struct lowp_position *position,
                          int64_t outputs, const uint8_t *results, const int64_t size) {
  uint8_t *out = (uint8_t *)place->out + position->at * size;
  if (!place->is_planar) {
    const int64_t rest = max(place->padded - outputs, 0);
    for (int p = 0; outputs == PANEL && p < position->columns; p++)
      memcpy(out + p * place->step * size, results + p * PANEL * size, (size_t)(PANEL * size));
    if (outputs == PANEL) return;
    for (int p = 0; p < position->columns;
         p++, out += place->step * size, results += PANEL * size) {
      memcpy(out, results, (size_t)(outputs * size));
      memset(out + outputs * size, 0, (size_t)(rest * size));
    }
    return;
  }
  for (int64_t o = 0; o < outputs; o++, out += place->plane * size, results += size)
    for (int p = 0; p < position->columns; p++)
      memcpy(out + p * size, results + p * PANEL * size, (size_t)size);
}

/* Bias, residual and activation of float32, in `sums` or at the result's place. */
static void finish_floats(const struct lowp_place *place, const struct lowp_position *position,
                          int64_t outputs, int32_t *sums, int is_in_place) {
  struct position floats = {.at = position->at, .rows = 1, .columns = position->columns};
  struct place to = {.after = &place->after->after,
                     .out = place->out,
                     .step = place->step,
                     .plane = place->is_planar ? place->plane : BLOCK,
                     .first = place->first,
                     .is_planar = place->is_planar};
  if (is_in_place) {
    floats.at = 0;
    to.out = floats_of(sums), to.step = PANEL, to.plane = BLOCK, to.is_planar = 0;
  }
  dso_op_finish(&to, &floats, outputs, floats_of(sums));
}

void dso_op_lowp_finish(const struct lowp_place *place, const struct lowp_position *position,
                        int64_t outputs, int32_t *sums) {
  const int pixels = position->columns;
  _Alignas(64) uint8_t results[LOWP_PIXELS * PANEL * 2];
  if (size_of(place->type) == 1) {
    round_sums(place, pixels, outputs, sums, results);
    store_results(place, position, outputs, results, 1);
    return;
  }
  for (int i = 0; place->zeros != NULL && i < pixels * PANEL; i += LANES)
    store_words(sums + i, sum_of(words_at(sums + i), words_at(place->zeros->added + i % PANEL)));
  if (place->type == DSO_OP_INT32) {
    store_results(place, position, outputs, (const uint8_t *)sums, 4);
    return;
  }
  scale_sums(place, pixels, outputs, sums);
  if (place->type == DSO_OP_FLOAT32) {
    finish_floats(place, position, outputs, sums, 0);
  } else {
    finish_floats(place, position, outputs, sums, 1);
    round_to_bfloat16(floats_of(sums), pixels * PANEL, (uint16_t *)(void *)results);
    store_results(place, position, outputs, results, 2);
  }
}
