/* Convolutions of 8-bit integers: the tiles read their pixels where they are.
 *
 * An image that is planar, of the other signedness, or needs pixels around it is copied into the
 * workspace first, in blocks, with the zero of the image around it. */
#include <string.h>

#include "window_lowp.h"

/* The view of a convolution that its items use. */
struct plan {
  const struct dso_op_lowp_conv2d *conv;
  struct lowp_window window;
  int is_copied;
  int64_t pad[2];           /* pixels before the first one: of the copy */
  int64_t height, width;    /* of a plane as the tiles read it */
  int64_t plane, image;     /* bytes of a block's plane, and of one image */
  int64_t rows, row_pixels; /* of the output; rows that are adjacent are one */
  int64_t columns, chunks;  /* tiles in a row; chunks of POSITIONS tiles */
  const uint8_t *data;
};

static struct plan plan_of(const struct dso_op_lowp_conv2d *conv) {
  struct plan plan = {.conv = conv, .window = lowp_window_of(conv)};
  const struct lowp_window *window = &plan.window;
  const int64_t in[2] = {conv->in.height, conv->in.width};
  const int64_t out[2] = {conv->out.height, conv->out.width};
  int64_t extent[2];
  int is_one = 1, needs_more = 0;
  for (int d = 0; d < 2; d++) {
    const int64_t reach =
        (out[d] - 1) * conv->stride[d] + (conv->kernel[d] - 1) * conv->dilation[d];
    plan.pad[d] = conv->pad[d];
    extent[d] = max(in[d] + conv->pad[d], reach + 1);
    needs_more |= extent[d] > in[d];
    is_one &= conv->kernel[d] == 1 && conv->stride[d] == 1;
  }
  plan.is_copied = conv->in.block != window->block || needs_more || left_flip(conv->in_type);
  plan.height = plan.is_copied ? extent[0] : in[0];
  plan.width = plan.is_copied ? extent[1] : in[1];
  plan.plane = plan.height * plan.width * window->block;
  plan.image = window->groups * window->blocks * plan.plane;
  plan.rows = out[0], plan.row_pixels = out[1];
  if (is_one && plan.width == out[1] && plan.height == out[0])
    plan.row_pixels *= plan.rows, plan.rows = 1;
  plan.columns = ceil_div(plan.row_pixels, LOWP_PIXELS);
  plan.chunks = ceil_div(plan.rows * plan.columns, POSITIONS);
  return plan;
}

int64_t dso_op_lowp_conv2d_workspace(const struct dso_op_lowp_conv2d *conv) {
  const struct plan plan = plan_of(conv);
  return plan.is_copied ? max(conv->batch, 1) * plan.image : 0;
}

static void fill(uint8_t *to, int64_t pixels, int64_t block, int64_t channels, uint8_t value) {
  for (int64_t i = 0; i < pixels; i++, to += block) {
    memset(to, value, (size_t)channels);
    memset(to + channels, 0, (size_t)(block - channels));
  }
}

/* One item of the preparation: a plane of a block of channels. */
static void prepare(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_lowp_conv2d *conv = plan->conv;
  const struct lowp_window *window = &plan->window;
  const struct dso_op_lowp_image *in = &conv->in;
  const int64_t planes = window->groups * window->blocks, block = window->block;
  const int64_t batch = index / planes, group = index % planes / window->blocks;
  const int64_t skipped = index % window->blocks * block;
  const int64_t channels = min(window->channels - skipped, block);
  const int64_t size = ceil_div(in->channels, in->block) * in->block * in->height * in->width;
  const uint8_t flip = left_flip(conv->in_type);
  const uint8_t zero = (uint8_t)(integer_at(conv->a_zero, conv->in_type, 0) ^ flip);
  uint8_t *to = (uint8_t *)conv->workspace + index * plan->plane;
  const int64_t row = plan->width * block, left = plan->pad[1];
  for (int64_t y = 0; y < plan->height; y++, to += row) {
    const int64_t from = y - plan->pad[0];
    if (from < 0 || from >= in->height) {
      fill(to, plan->width, block, channels, zero);
      continue;
    }
    fill(to, left, block, channels, zero);
    dso_op_lowp_copy_row(in, (const uint8_t *)in->data + batch * size,
                         group * window->channels + skipped, channels, from, flip,
                         to + left * block, block);
    fill(to + (left + in->width) * block, plan->width - left - in->width, block, channels, zero);
  }
}

/* Where the results of a panel go. */
static struct lowp_place place_of(const struct plan *plan, int64_t first, int64_t batch,
                                  int64_t *at) {
  const struct dso_op_lowp_image *out = &plan->conv->out;
  const int64_t plane = out->height * out->width;
  *at = (batch * ceil_div(out->channels, out->block) * out->block + first) * plane;
  return (struct lowp_place){.after = &plan->conv->after,
                             .type = plan->conv->out_type,
                             .out = out->data,
                             .step = out->block,
                             .plane = plane,
                             .first = first,
                             .padded = out->block > 1 ? out->block : 0,
                             .is_planar = out->block == 1};
}

/* The tiles of a chunk; `at` is the distance of output (0, 0). */
static int positions_of(const struct plan *plan, int64_t chunk, const uint8_t *from, int64_t at,
                        struct lowp_position *positions) {
  const struct dso_op_lowp_conv2d *conv = plan->conv;
  const int64_t block = plan->window.block, tiles = plan->rows * plan->columns;
  const int64_t first = part_begin(tiles, plan->chunks, chunk);
  const int count = (int)(part_begin(tiles, plan->chunks, chunk + 1) - first);
  for (int i = 0; i < count; i++) {
    const int64_t y = (first + i) / plan->columns, column = (first + i) % plan->columns;
    const int64_t x = part_begin(plan->row_pixels, plan->columns, column);
    positions[i] = (struct lowp_position){
        .data = from + (y * conv->stride[0] * plan->width + x * conv->stride[1]) * block,
        .plane = plan->plane,
        .at = at + (y * plan->row_pixels + x) * conv->out.block,
        .columns = (int)(part_begin(plan->row_pixels, plan->columns, column + 1) - x)};
  }
  return count;
}

/* The sums of a block of channels, for each tile. */
static void depthwise_tiles(const struct plan *plan, const struct lowp_tile *tile,
                            const struct lowp_position *positions, int count, int64_t outputs,
                            const struct lowp_place *place) {
  const struct dso_op_lowp_conv2d *conv = plan->conv;
  _Alignas(64) int32_t sums[LOWP_PIXELS * PANEL], zeros[PANEL];
  const int32_t moved = conv->weight_type == DSO_OP_UINT8 ? 128 : 0;
  for (int64_t j = 0; j < PANEL; j++) {
    const int64_t at = (place->first + min(j, outputs - 1)) * conv->b_zero_step;
    zeros[j] = integer_at(conv->b_zero, conv->weight_type, at) - moved;
  }
  for (int i = 0; i < count; i++) {
    dso_op_lowp_depthwise(conv, positions[i].data, tile->step, tile->tap,
                          (const int8_t *)(const void *)tile->weight, zeros, positions[i].columns,
                          sums);
    dso_op_lowp_finish(place, &positions[i], outputs, sums);
  }
}

/* One item: a panel of outputs for some tiles. */
static void convolve(const void *data, int64_t index) {
  const struct plan *plan = data;
  const struct dso_op_lowp_conv2d *conv = plan->conv;
  const struct lowp_window *window = &plan->window;
  const int64_t panels = window->groups * window->panels, parts = plan->chunks * panels;
  const int64_t batch = index / parts, chunk = index % parts / panels, part = index % panels;
  const int64_t group = part / window->panels, skipped = part % window->panels * PANEL;
  const int64_t first = group * window->outputs + skipped;
  const int64_t outputs = min(window->outputs - skipped, PANEL), block = window->block;
  const struct lowp_tile tile = {
      .step = conv->stride[1] * block,
      .blocks = window->blocks,
      .words = window->words,
      .last = window->last,
      .taps = {conv->kernel[0], conv->kernel[1]},
      .tap = {conv->dilation[0] * plan->width * block, conv->dilation[1] * block},
      .weight = (const uint8_t *)conv->weight + part * window->panel};
  struct lowp_zeros zeros;
  const int64_t inner = window->is_depthwise ? window->taps : window->channels * window->taps;
  dso_op_lowp_zeros(&zeros,
                    (const int32_t *)(const void *)(tile.weight + window->panel - WORD_PANEL),
                    inner, left_zero(conv->a_zero, conv->in_type), conv->b_zero, conv->b_zero_step,
                    conv->weight_type, conv->after.bias, first, outputs);
  int64_t at;
  struct lowp_place place = place_of(plan, first, batch, &at);
  place.zeros = &zeros;
  struct lowp_position positions[POSITIONS] = {{.data = NULL}};
  const int64_t skip = window->is_depthwise ? part : group * window->blocks;
  const int count = positions_of(plan, chunk, plan->data + batch * plan->image + skip * plan->plane,
                                 at, positions);
  if (window->is_depthwise) depthwise_tiles(plan, &tile, positions, count, outputs, &place);
  else dso_op_lowp_tiles(&tile, positions, count, outputs, &place);
}

int dso_op_lowp_conv2d(const struct dso_op_lowp_conv2d *conv) {
  struct plan plan = plan_of(conv);
  const struct lowp_window *window = &plan.window;
  const int64_t batches = max(conv->batch, 1), planes = window->groups * window->blocks;
  plan.data = plan.is_copied ? conv->workspace : conv->in.data;
  if (plan.is_copied && dso_op_parallel(prepare, &plan, batches * planes, batches * plan.image))
    return -1;
  const int64_t panels = window->groups * window->panels;
  return dso_op_parallel(convolve, &plan, batches * plan.chunks * panels,
                         batches * plan.rows * plan.row_pixels * panels * window->panel / 4);
}
