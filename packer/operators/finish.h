/* The activations that only bound a value: to anything, to what is not negative, or to a range. */
#ifndef DSO_OPERATORS_FINISH_H
#define DSO_OPERATORS_FINISH_H

#include <math.h>

#include "parts.h"

INLINE int is_bounded(const struct dso_op_after *after) {
  return after->activation <= DSO_OP_CLIP; /* or none, or ReLU */
}
INLINE float low_of(const struct dso_op_after *after) {
  if (after->activation == DSO_OP_CLIP) return after->low;
  return after->activation == DSO_OP_RELU ? 0 : -INFINITY;
}
INLINE float high_of(const struct dso_op_after *after) {
  return after->activation == DSO_OP_CLIP ? after->high : INFINITY;
}

#endif
