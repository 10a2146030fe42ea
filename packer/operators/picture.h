/* Pictures and their frames. */
#ifndef DSO_OPERATORS_PICTURE_H
#define DSO_OPERATORS_PICTURE_H

#include "parts.h"

/* How many planes or blocks of channels a picture has. */
INLINE int64_t planes_of(const struct dso_op_picture *picture) {
  return ceil_div(picture->channels, picture->block);
}

INLINE void clear(float *to, int64_t count) {
  for (; count >= LANES; count -= LANES, to += LANES) store(to, splat(0));
  for (; count > 0; count--) *to++ = 0;
}

/* Copy row y of plane or block p from one picture to another, in any layouts; write the frame on
 * its two sides. The pictures have the same extents; `p` counts planes of `out`. */
DSO_OP_API void dso_op_copy_row(const struct dso_op_picture *in, const struct dso_op_picture *out,
                                int64_t p, int64_t y);

/* Write the rows of the frame above and below plane or block p, and with `sides` those beside it. */
DSO_OP_API void dso_op_write_frame(const struct dso_op_picture *out, int64_t p, int sides);

#endif
