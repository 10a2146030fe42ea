/* Images and their padding. */
#ifndef DSO_OPERATORS_IMAGE_H
#define DSO_OPERATORS_IMAGE_H

#include "parts.h"

/* How many planes or blocks of channels an image has. */
INLINE int64_t planes_of(const struct dso_op_image *image) {
  return ceil_div(image->channels, image->block);
}

/* The rows of padding above a plane and below it: `padding`, or 0 if planes have no place for them. */
INLINE int64_t padded_rows(const struct dso_op_image *image) {
  const int64_t framed = (image->height + 2 * image->padding) * image->row;
  return image->plane && image->plane < framed ? 0 : image->padding;
}

INLINE void clear(float *to, int64_t count) {
  for (; count >= LANES; count -= LANES, to += LANES) store(to, splat(0));
  for (; count > 0; count--) *to++ = 0;
}

/* Copy row y of plane or block p from one image to another, in any layouts; write the padding on
 * its two sides. The images have the same extents; `p` counts planes of `out`. */
DSO_OP_API void dso_op_copy_row(const struct dso_op_image *in, const struct dso_op_image *out,
                                int64_t p, int64_t y);

/* Write the rows of the padding above and below plane or block p, and with `sides` those beside it. */
DSO_OP_API void dso_op_write_padding(const struct dso_op_image *out, int64_t p, int sides);

#endif
