/* Images from one layout to another. */
#include <string.h>

#include "image.h"

/* Planes to a block: the rows of BLOCK planes, a few pixels at once. */
static void gather(const float *from, int64_t plane, int64_t channels, int64_t width, float *to) {
  for (int64_t x = 0; x < width; x += BLOCK, from += BLOCK, to += BLOCK * BLOCK) {
    const int64_t pixels = min(width - x, BLOCK);
    if (channels < BLOCK) clear(to, pixels * BLOCK);
    int64_t c = 0;
    if (pixels == BLOCK)
      for (; c + 4 <= channels; c += 4)
        for (int64_t i = 0; i < pixels; i += 4)
          transpose(from + c * plane + i, plane, to + i * BLOCK + c, BLOCK);
    for (; c < channels; c++)
      for (int64_t i = 0; i < pixels; i++) to[i * BLOCK + c] = from[c * plane + i];
  }
}

/* A block to one of its planes. */
static void scatter(const float *from, int64_t width, float *to) {
  for (int64_t x = 0; x < width; x++) to[x] = from[x * BLOCK];
}

void dso_op_copy_row(const struct dso_op_image *in, const struct dso_op_image *out, int64_t p,
                     int64_t y) {
  const int64_t width = in->width, row = y * in->row, side = out->padding * out->block;
  float *to = out->data + p * out->plane + y * out->row;
  if (in->block == out->block) /* channels that are missing are zeros in both */
    memcpy(to, in->data + p * in->plane + row, (size_t)(width * in->block) * sizeof *to);
  else if (out->block == BLOCK)
    gather(in->data + p * BLOCK * in->plane + row, in->plane, min(in->channels - p * BLOCK, BLOCK),
           width, to);
  else scatter(in->data + p / BLOCK * in->plane + row + p % BLOCK, width, to);
  clear(to - side, side);
  clear(to + width * out->block, side);
}

void dso_op_write_padding(const struct dso_op_image *out, int64_t p, int sides) {
  const int64_t side = out->padding * out->block, width = out->width * out->block;
  const int64_t above = padded_rows(out);
  float *first = out->data + p * out->plane;
  for (int64_t y = -above; y < out->height + above; y++) {
    float *row = first + y * out->row;
    if (y < 0 || y >= out->height) {
      clear(row - side, width + 2 * side);
    } else if (sides) {
      clear(row - side, side);
      clear(row + width, side);
    }
  }
}

struct copy {
  const struct dso_op_image *in, *out;
};

/* One plane or block of one image. */
static void copy(const void *data, int64_t index) {
  const struct copy *copied = data;
  const int64_t planes = planes_of(copied->out), batch = index / planes, p = index % planes;
  struct dso_op_image in = *copied->in, out = *copied->out;
  in.data += batch * in.batch;
  out.data += batch * out.batch;
  for (int64_t y = 0; y < in.height; y++) dso_op_copy_row(&in, &out, p, y);
  dso_op_write_padding(&out, p, 1);
}

int dso_op_reorder(int64_t batch, const struct dso_op_image *in, const struct dso_op_image *out) {
  const struct copy copied = {in, out};
  const int64_t planes = planes_of(out);
  return dso_op_parallel(copy, &copied, batch * planes,
                         batch * planes * out->block * out->height * out->width);
}
