/* Convolutions: tiles read their pixels where they are, so no matrix of windows is made.
 *
 * An image that is planar, or has too little padding, is copied into the workspace first, in blocks
 * and with padding. First layers, which have few channels, stay planar. */
#include "window.h"

/* The view of a convolution that its items use. */
struct plan {
  const struct dso_op_conv2d *conv;
  struct weights weights;
  struct dso_op_image in; /* as the tiles read it: of the caller, or in the workspace */
  int is_copied;
  int64_t copied;        /* planes or blocks of all images, into the workspace */
  int64_t height, width; /* of the output; rows that are adjacent are one */
  int64_t rows, columns; /* of tiles: 1 or 2 rows of pixels each */
  int64_t tall;          /* rows of pixels in a tile */
  int64_t chunks;        /* of POSITIONS tiles */
};

/* The padding that the windows read: rows in padding[0], columns in padding[1]. */
static void find_padding(const struct dso_op_conv2d *conv, int64_t padding[2]) {
  const int64_t in[2] = {conv->in.height, conv->in.width};
  const int64_t out[2] = {conv->out.height, conv->out.width};
  for (int d = 0; d < 2; d++) {
    const int64_t window = (conv->kernel[d] - 1) * conv->dilation[d] + 1;
    const int64_t after = (out[d] - 1) * conv->stride[d] + window - conv->pad[d] - in[d];
    padding[d] = max(0, max(conv->pad[d], after));
  }
}

/* Rows that follow each other without a gap in both images are one row to a window of 1 x 1. */
static int is_flat(const struct plan *plan) {
  const struct dso_op_conv2d *conv = plan->conv;
  const struct dso_op_image *in = &plan->in, *out = &conv->out;
  return conv->kernel[0] == 1 && conv->kernel[1] == 1 && conv->stride[0] == 1 &&
         conv->stride[1] == 1 && in->width == out->width && in->row == in->width * in->block &&
         out->row == out->width * out->block && !conv->pad[0] && !conv->pad[1];
}

/* How many images the input has. */
static int64_t images_of(const struct dso_op_conv2d *conv) {
  const int64_t batch = max(conv->batch, 1);
  return conv->depth.out ? batch / conv->depth.out * conv->depth.in : batch;
}

static struct plan plan_of(const struct dso_op_conv2d *conv) {
  struct plan plan = {.conv = conv, .weights = weights_of(conv), .in = conv->in};
  struct dso_op_image *in = &plan.in;
  int64_t needs[2];
  find_padding(conv, needs);
  const int64_t padding = max(needs[0], needs[1]), above = needs[0] ? padding : 0;
  in->block = plan.weights.block;
  plan.is_copied = conv->in.block != in->block || conv->in.padding < padding ||
                   padded_rows(&conv->in) < needs[0];
  if (plan.is_copied) {
    plan.copied = images_of(conv) * planes_of(in);
    in->padding = padding;
    in->row = (in->width + 2 * padding) * in->block;
    in->plane = (in->height + 2 * above) * in->row;
    in->batch = planes_of(in) * in->plane;
  }
  plan.height = conv->out.height;
  plan.width = conv->out.width;
  if (is_flat(&plan)) plan.width *= plan.height, plan.height = 1;
  plan.tall = plan.width <= PIXELS / 2 && plan.height > 1 ? 2 : 1;
  plan.rows = ceil_div(plan.height, plan.tall);
  plan.columns = ceil_div(plan.width, PIXELS);
  plan.chunks = ceil_div(plan.rows * plan.columns, POSITIONS);
  return plan;
}

int64_t dso_op_conv2d_workspace(const struct dso_op_conv2d *conv) {
  const struct plan plan = plan_of(conv);
  return plan.copied * plan.in.plane;
}

/* One item of the preparation: a plane of the copy, or the padding of a plane of the output. */
static void prepare(const void *data, int64_t index) {
  const struct plan *plan = data;
  struct dso_op_image from = plan->conv->in, in = plan->in, out = plan->conv->out;
  const int64_t copied = plan->copied;
  const int64_t planes = planes_of(index < copied ? &in : &out);
  const int64_t number = index < copied ? index : index - copied;
  const int64_t batch = number / planes, p = number % planes;
  if (index < copied) {
    from.data += batch * from.batch;
    in.data += batch * in.batch + padded_rows(&in) * in.row + in.padding * in.block;
    for (int64_t y = 0; y < in.height; y++) dso_op_copy_row(&from, &in, p, y);
    dso_op_write_padding(&in, p, 0);
  } else {
    out.data += batch * out.batch;
    dso_op_write_padding(&out, p, !plan->weights.is_depthwise);
  }
}

/* The first pixel of an image that the window of output (0, 0) reads. */
static const float *origin(const struct plan *plan, int64_t image) {
  const struct dso_op_image *in = &plan->in;
  const int64_t *pad = plan->conv->pad, above = plan->is_copied ? padded_rows(in) : 0;
  const int64_t before = plan->is_copied ? in->padding : 0;
  return in->data + image * in->batch + (above - pad[0]) * in->row + (before - pad[1]) * in->block;
}

/* The tiles of a chunk; `to` is the distance of output (0, 0). */
static int positions_of(const struct plan *plan, int64_t chunk, const float *from, int64_t to,
                        struct position *positions) {
  const struct dso_op_conv2d *conv = plan->conv;
  const struct dso_op_image *in = &plan->in, *out = &conv->out;
  const int64_t tiles = plan->rows * plan->columns;
  const int64_t first = part_begin(tiles, plan->chunks, chunk);
  const int count = (int)(part_begin(tiles, plan->chunks, chunk + 1) - first);
  for (int i = 0; i < count; i++) {
    const int64_t number = first + i, column = number % plan->columns;
    const int64_t y = number / plan->columns * plan->tall;
    const int64_t x = part_begin(plan->width, plan->columns, column);
    positions[i] = (struct position){
        .data = from + y * conv->stride[0] * in->row + x * conv->stride[1] * in->block,
        .plane = in->plane,
        .at = to + y * out->row + x * out->block,
        .rows = (int)min(plan->tall, plan->height - y),
        .columns = (int)(part_begin(plan->width, plan->columns, column + 1) - x),
    };
  }
  return count;
}

/* One item: a panel of outputs for some tiles. */
static void convolve(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_conv2d *conv = plan->conv;
  const struct weights *weights = &plan->weights;
  const struct dso_op_image *in = &plan->in, *out = &conv->out;
  const int64_t parts = plan->chunks * weights->panels, batch = index / parts;
  const int64_t chunk = index % parts / weights->panels, panel = index % weights->panels;
  const int64_t first = panel * PANEL, outputs = min(out->channels - first, PANEL);
  const struct taps depth = taps_of(conv, batch);
  const int64_t taps = conv->kernel[0] * conv->kernel[1]; /* of one image */
  const struct tile tile = {
      .step = conv->stride[1] * in->block,
      .below = conv->stride[0] * in->row,
      .blocks = weights->blocks,
      .block = weights->block,
      .last = weights->last,
      .taps = {depth.end - depth.begin, conv->kernel[0], conv->kernel[1]},
      .tap = {conv->depth.dilation * in->batch, conv->dilation[0] * in->row,
              conv->dilation[1] * in->block},
      .skipped = {depth.begin * taps, weights->taps - depth.end * taps},
      .weight = element(conv->weight, conv->weight_type, panel * panel_size(weights)),
      .type = conv->weight_type,
      .weight_step = PANEL};
  const struct place place = place_of(conv, first);
  struct position positions[POSITIONS] = {{.data = NULL}};
  _Alignas(64) float sums[POSITIONS * PIXELS * PANEL];
  const float *from = origin(plan, depth.image) + first_block(weights, panel) * in->plane;
  const int64_t to = batch * out->batch + first / out->block * out->plane;
  const int count = positions_of(plan, chunk, from, to, positions);
  dso_op_tiles(&tile, positions, count, outputs, sums, &place);
}

/* How many rows of a depthwise convolution are one item. */
static int64_t rows_at_once(const struct dso_op_conv2d *conv) {
  enum { PIXELS_AT_ONCE = 112 };
  return min(ceil_div(PIXELS_AT_ONCE, max(conv->out.width, 1)), conv->out.height);
}

/* One item of a depthwise convolution: some rows of a block. */
static void convolve_depthwise(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_conv2d *conv = plan->conv;
  const int64_t count = rows_at_once(conv), parts = ceil_div(conv->out.height, count);
  const int64_t blocks = planes_of(&plan->in), batch = index / (blocks * parts);
  const int64_t block = index / parts % blocks, y = index % parts * count;
  const struct taps taps = taps_of(conv, batch);
  dso_op_depthwise(conv, &plan->in, origin(plan, taps.image) + block * plan->in.plane, &taps, batch,
                   block, y, min(y + count, conv->out.height));
}

int dso_op_conv2d(const struct dso_op_conv2d *conv) {
  struct plan plan = plan_of(conv);
  const struct weights *weights = &plan.weights;
  const int64_t batches = max(conv->batch, 1), pixels = conv->out.height * conv->out.width;
  const int64_t padded = conv->out.padding ? batches * planes_of(&conv->out) : 0;
  const int64_t moved = plan.copied * plan.in.plane;
  if (plan.is_copied) plan.in.data = conv->workspace;
  if (plan.copied + padded && dso_op_parallel(prepare, &plan, plan.copied + padded, moved))
    return -1;
  if (weights->is_depthwise)
    return dso_op_parallel(convolve_depthwise, &plan,
                           batches * planes_of(&plan.in) *
                               ceil_div(conv->out.height, rows_at_once(conv)),
                           batches * pixels * conv->in.channels * weights->taps);
  return dso_op_parallel(convolve, &plan, batches * plan.chunks * weights->panels,
                         batches * pixels * weights->panels * panel_size(weights));
}
