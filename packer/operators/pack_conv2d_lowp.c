/* Weights of convolutions of 8-bit integers in the order in which the tiles read them. */
#include <string.h>

#include "window_lowp.h"

int64_t dso_op_lowp_conv2d_packed_size(const struct dso_op_lowp_conv2d *conv) {
  const struct lowp_window window = lowp_window_of(conv);
  return window.groups * window.panels * window.panel;
}

/* One output: `to` is its first element in a panel. */
static void pack_output(const struct lowp_window *window, const int8_t *weight, int8_t flip,
                        int8_t *to, int32_t *sum) {
  for (int64_t b = 0; b < window->blocks; b++) {
    const int64_t count = b + 1 < window->blocks ? window->words : window->last;
    for (int64_t tap = 0; tap < window->taps; tap++)
      for (int64_t w = 0; w < count; w++, to += WORD_PANEL)
        for (int64_t c = 0; c < WORD; c++) {
          const int64_t channel = b * window->block + w * WORD + c;
          if (channel >= window->channels) continue;
          to[c] = weight[channel * window->taps + tap] ^ flip;
          *sum += to[c];
        }
  }
}

void dso_op_lowp_conv2d_pack(const struct dso_op_lowp_conv2d *conv, const void *weight,
                             void *packed) {
  const struct lowp_window window = lowp_window_of(conv);
  const int8_t flip = (int8_t)right_flip(conv->weight_type), *from = weight;
  memset(packed, 0, (size_t)dso_op_lowp_conv2d_packed_size(conv));
  for (int64_t group = 0; group < window.groups; group++)
    for (int64_t o = 0; o < window.outputs; o++) {
      const int64_t panel = group * window.panels + o / PANEL, lane = o % PANEL;
      int8_t *to = (int8_t *)packed + panel * window.panel;
      int32_t sum = 0;
      if (window.is_depthwise)
        for (int64_t tap = 0; tap < window.taps; tap++, from++)
          to[tap * PANEL + lane] = *from ^ flip, sum += to[tap * PANEL + lane];
      else {
        pack_output(&window, from, flip, to + lane * WORD, &sum);
        from += window.channels * window.taps;
      }
      memcpy(to + window.panel - WORD_PANEL + lane * WORD, &sum, sizeof sum);
    }
}
