/* One row of a tensor along an axis, as pairs that sort in ascending order. */
#pragma once

#include <string.h>

#include "functions/arguments.h"
#include "functions/pairs.h"

/* The type of the keys: floats are compared as doubles, integers as int64. */
enum key_kind { NO_KEY, REAL_KEY, INT_KEY };

/* The kind of a data type: float16, float32, float64, int8, uint8, int32, int64; or NO_KEY. */
enum key_kind key_kind_of(DLDataType dtype);

/* A place of the tensor: its data type, the first element, and the distance of two elements. */
struct row {
  DLDataType dtype;
  const char *data;
  int64_t stride;
};

/* Read elements `begin` to `end` as keys, with their positions. For a descending order the keys are
 * negated, which keeps ties and NaN. `pairs` is of the kind of the data type, and filled from its
 * start. */
void row_read(const struct row *row, int64_t begin, int64_t end, int is_ascending, void *pairs);

/* Both types of pairs have this size, and their index at this place. */
enum { PAIR_SIZE = sizeof(struct real_pair) };
static inline int64_t pair_index(const char *pairs, int64_t at) {
  int64_t index;
  memcpy(&index, pairs + at * PAIR_SIZE + offsetof(struct real_pair, index), sizeof index);
  return index;
}

/* Store an index: in int32, int64, float32, float64, int8 or uint8. */
void store_index(char *data, DLDataType dtype, int64_t index);
