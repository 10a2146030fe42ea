/* Weights of convolutions in the order in which tiles read them. */
#include "window.h"

int64_t dso_op_conv2d_packed_size(const struct dso_op_conv2d *conv) {
  const struct weights weights = weights_of(conv);
  if (weights.is_depthwise) return ceil_div(weights.outputs, BLOCK) * BLOCK * weights.taps;
  return weights.panels * panel_size(&weights);
}

static void pack_depthwise(const struct weights *weights, const float *weight, float *packed) {
  for (int64_t first = 0; first < weights->outputs; first += BLOCK)
    for (int64_t tap = 0; tap < weights->taps; tap++)
      for (int64_t c = first; c < first + BLOCK; c++)
        *packed++ = c < weights->outputs ? weight[c * weights->taps + tap] : 0;
}

void dso_op_conv2d_pack(const struct dso_op_conv2d *conv, const float *weight, float *packed) {
  const struct weights weights = weights_of(conv);
  const int64_t channels = weights.channels, per_group = weights.outputs / weights.groups;
  if (weights.is_depthwise) {
    pack_depthwise(&weights, weight, packed);
    return;
  }
  for (int64_t panel = 0; panel < weights.panels; panel++) {
    const int64_t outputs = panel * PANEL;
    int64_t begin[PANEL]; /* the first channel that an output reads */
    for (int i = 0; i < PANEL; i++) begin[i] = (outputs + i) / per_group * channels;
    for (int64_t block = 0; block < weights.blocks; block++) {
      const int64_t count = block + 1 < weights.blocks ? weights.block : weights.last;
      const int64_t first = (first_block(&weights, panel) + block) * weights.block;
      for (int64_t tap = 0; tap < weights.taps; tap++)
        for (int64_t c = first; c < first + count; c++)
          for (int i = 0; i < PANEL; i++) {
            const int64_t o = outputs + i, of_group = c - begin[i];
            const int is_read = o < weights.outputs && of_group >= 0 && of_group < channels;
            *packed++ = is_read ? weight[(o * channels + of_group) * weights.taps + tap] : 0;
          }
    }
  }
}
