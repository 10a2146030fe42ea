/* Rows of a tensor as pairs of a key and an index. */
#include "functions/rows.h"

#include "abi/half.h"

_Static_assert(sizeof(struct real_pair) == sizeof(struct int_pair) &&
                   offsetof(struct real_pair, index) == offsetof(struct int_pair, index),
               "pair_index reads both");

enum key_kind key_kind_of(DLDataType dtype) {
  if (dtype.lanes != 1) return NO_KEY;
  if (dtype.code == DTYPE_FLOAT)
    return dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64 ? REAL_KEY : NO_KEY;
  if (dtype.code == DTYPE_UINT) return dtype.bits == 8 ? INT_KEY : NO_KEY;
  if (dtype.code != DTYPE_INT) return NO_KEY;
  return dtype.bits == 8 || dtype.bits == 32 || dtype.bits == 64 ? INT_KEY : NO_KEY;
}

#define READ(type, expression)                          \
  for (int64_t i = begin; i < end; i++) {               \
    type value;                                         \
    memcpy(&value, row->data + i * step, sizeof value); \
    pairs[i - begin].key = (expression);                \
    pairs[i - begin].index = i;                         \
  }

static void read_reals(const struct row *row, int64_t begin, int64_t end, struct real_pair *pairs) {
  int64_t step = row->stride * (int64_t)dtype_itemsize(row->dtype);
  switch (row->dtype.bits) {
    case 16: READ(uint16_t, half_value(value)) break;
    case 32: READ(float, (double)value) break;
    default: READ(double, value) break;
  }
}

static void read_ints(const struct row *row, int64_t begin, int64_t end, struct int_pair *pairs) {
  int64_t step = row->stride * (int64_t)dtype_itemsize(row->dtype);
  if (row->dtype.code == DTYPE_UINT) {
    READ(uint8_t, value)
    return;
  }
  switch (row->dtype.bits) {
    case 8: READ(int8_t, (int64_t)value) break; /* NOLINT(bugprone-signed-char-misuse) */
    case 32: READ(int32_t, value) break;
    default: READ(int64_t, value) break;
  }
}

void row_read(const struct row *row, int64_t begin, int64_t end, int is_ascending, void *pairs) {
  if (key_kind_of(row->dtype) == REAL_KEY) {
    struct real_pair *reals = pairs;
    read_reals(row, begin, end, reals);
    for (int64_t i = 0; !is_ascending && i < end - begin; i++) reals[i].key = -reals[i].key;
  } else {
    struct int_pair *ints = pairs;
    read_ints(row, begin, end, ints);
    for (int64_t i = 0; !is_ascending && i < end - begin; i++) ints[i].key = ~ints[i].key;
  }
}

#define STORE(type)                     \
  {                                     \
    type value = (type)index;           \
    memcpy(data, &value, sizeof value); \
    break;                              \
  }

void store_index(char *data, DLDataType dtype, int64_t index) {
  switch (dtype.code << 8 | dtype.bits) {
    case DTYPE_INT << 8 | 8: STORE(int8_t)
    case DTYPE_UINT << 8 | 8: STORE(uint8_t)
    case DTYPE_INT << 8 | 32: STORE(int32_t)
    case DTYPE_FLOAT << 8 | 32: STORE(float)
    case DTYPE_FLOAT << 8 | 64: STORE(double)
    default: STORE(int64_t)
  }
}
