/* The view of a convolution of 8-bit integers that conv2d_lowp.c, depthwise_lowp.c and their
 * packing share. */
#ifndef DSO_OPERATORS_WINDOW_NARROW_H
#define DSO_OPERATORS_WINDOW_NARROW_H

#include "lowp.h"

/* Each group is a separate convolution. A depthwise one has a block of channels as its group. */
struct lowp_window {
  int64_t groups, channels, outputs; /* of one group */
  int64_t block, blocks;             /* of channels as the tiles read them, in a group */
  int64_t words, last;               /* in a block, and in the last one */
  int64_t panels, taps;
  int64_t panel;    /* bytes of a packed one */
  int is_depthwise; /* [taps][PANEL], then the sums */
};

INLINE struct lowp_window lowp_window_of(const struct dso_op_lowp_conv2d *conv) {
  const int64_t groups = max(conv->groups, 1), all = conv->in.channels;
  struct lowp_window window = {.groups = groups,
                               .channels = all / groups,
                               .outputs = conv->out.channels / groups,
                               .taps = conv->kernel[0] * conv->kernel[1],
                               .is_depthwise =
                                   groups > 1 && groups == all && groups == conv->out.channels};
  if (window.is_depthwise) {
    window.groups = 1, window.channels = window.outputs = all;
    window.block = PANEL, window.blocks = window.panels = ceil_div(all, PANEL);
    window.panel = window.taps * PANEL + WORD_PANEL;
    return window;
  }
  window.block =
      conv->in.block > 1 ? ROW_BLOCK : min(ceil_div(window.channels, WORD) * WORD, ROW_BLOCK);
  window.blocks = ceil_div(window.channels, window.block);
  window.words = window.block / WORD;
  window.last = ceil_div(window.channels, WORD) - (window.blocks - 1) * window.words;
  window.panels = ceil_div(window.outputs, PANEL);
  window.panel =
      (window.taps * ((window.blocks - 1) * window.words + window.last) + 1) * WORD_PANEL;
  return window;
}

/* copy_lowp.c: copy row y of channels `first` ... first + channels - 1 of an image, at most a block
 * of them, to pixels of `block` bytes; missing channels are 0. */
DSO_OP_API void dso_op_lowp_copy_row(const struct dso_op_lowp_image *in, const uint8_t *data,
                                     int64_t first, int64_t channels, int64_t y, uint8_t flip,
                                     uint8_t *to, int64_t block);

/* depthwise_lowp.c: sums[pixels][PANEL] of a block of channels, for some pixels of a row. `data` is
 * the first pixel that the window of the first one reads, `step` the distance of pixels, and `tap`
 * the distances of the window. */
DSO_OP_API void dso_op_lowp_depthwise(const struct dso_op_lowp_conv2d *conv, const uint8_t *data,
                                      int64_t step, const int64_t *tap, const int8_t *weight,
                                      const int32_t *b_zeros, int pixels, int32_t *sums);

#endif
