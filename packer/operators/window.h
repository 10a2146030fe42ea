/* The view of a convolution that conv2d.c, depthwise.c and their packing share. */
#ifndef DSO_OPERATORS_WINDOW_H
#define DSO_OPERATORS_WINDOW_H

#include "image.h"

/* Panels read the blocks of input channels that their groups have; all read equally many blocks. */
struct weights {
  int64_t outputs, channels, groups; /* channels: of one group */
  int64_t block, blocks;             /* of input channels; blocks that a panel reads */
  int64_t last;                      /* channels in the last block that a panel reads */
  int64_t panels, taps;
  int is_depthwise; /* [blocks][taps][BLOCK] */
};

INLINE struct weights weights_of(const struct dso_op_conv2d *conv) {
  const int64_t groups = max(conv->groups, 1), all = conv->in.channels;
  const int64_t outputs = conv->out.channels;
  struct weights weights = {.outputs = outputs,
                            .channels = all / groups,
                            .groups = groups,
                            .panels = ceil_div(outputs, PANEL),
                            .taps = max(conv->depth.kernel, 1) * conv->kernel[0] * conv->kernel[1],
                            .is_depthwise = groups > 1 && groups == all && groups == outputs};
  weights.block = conv->in.block == 1 && all < BLOCK && groups == 1 ? 1 : BLOCK;
  weights.blocks = ceil_div(all, weights.block);
  weights.last = all - (weights.blocks - 1) * weights.block;
  if (groups > 1) {
    weights.blocks = 1;
    weights.last = BLOCK;
    for (int64_t first = 0; first < outputs; first += PANEL) {
      const int64_t per_group = outputs / groups, end = min(first + PANEL, outputs);
      const int64_t begin = first / per_group * weights.channels / BLOCK;
      const int64_t stop = ceil_div(((end - 1) / per_group + 1) * weights.channels, BLOCK);
      weights.blocks = max(weights.blocks, stop - begin);
    }
  }
  return weights;
}

/* The first block of input channels that a panel reads. */
INLINE int64_t first_block(const struct weights *weights, int64_t panel) {
  if (weights->groups == 1) return 0;
  const int64_t group = panel * PANEL / (weights->outputs / weights->groups);
  const int64_t all = ceil_div(weights->channels * weights->groups, BLOCK);
  return min(group * weights->channels / BLOCK, all - weights->blocks);
}

/* The floats of one panel. */
INLINE int64_t panel_size(const struct weights *weights) {
  return ((weights->blocks - 1) * weights->block + weights->last) * weights->taps * PANEL;
}

/* The taps of an output's window that are in its volume. */
struct taps {
  int64_t image;      /* of the input, which the first tap reads */
  int64_t begin, end; /* along the depth */
};

INLINE struct taps taps_of(const struct dso_op_conv2d *conv, int64_t batch) {
  const struct dso_op_depth *depth = &conv->depth;
  if (depth->out == 0) return (struct taps){batch, 0, 1};
  const int64_t first = batch / depth->out * depth->in, step = depth->dilation;
  const int64_t at = batch % depth->out * depth->stride - depth->pad;
  const int64_t begin = at < 0 ? ceil_div(-at, step) : 0;
  const int64_t end = at < depth->in ? min(ceil_div(depth->in - at, step), depth->kernel) : 0;
  if (begin >= end) return (struct taps){first, 0, 0};
  return (struct taps){first + at + begin * step, begin, end};
}

INLINE struct place place_of(const struct dso_op_conv2d *conv, int64_t first) {
  const struct dso_op_image *out = &conv->out;
  return (struct place){.after = &conv->after,
                        .out = out->data,
                        .step = out->block,
                        .below = out->row,
                        .plane = out->plane,
                        .first = first,
                        .is_planar = out->block == 1,
                        .is_padded = 1};
}

/* depthwise.c: rows y ... end - 1 of one block of channels, with the padding on their two sides. `data`
 * is the first pixel that the taps read for output (0, 0), in `in`'s layout. */
DSO_OP_API void dso_op_depthwise(const struct dso_op_conv2d *conv, const struct dso_op_image *in,
                                 const float *data, const struct taps *taps, int64_t batch,
                                 int64_t block, int64_t y, int64_t end);

#endif
