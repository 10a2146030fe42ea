/* Elements between float32 and integers of 8 bits, in parts of equal size. */
#include "lowp.h"

enum { PART = 1 << 14 }; /* elements of an item */

struct elements {
  const void *x;
  void *out;
  int64_t count;
  float scale;
  int32_t zero;
  enum dso_op_type type;
};

INLINE words quantized(const struct elements *all, vec x) {
  const int32_t first = all->type == DSO_OP_INT8 ? -128 : 0;
  const vec value = at_least(x / splat(all->scale), (float)(first - all->zero));
  return nearest(at_most(value, (float)(first + 255 - all->zero))) + all->zero;
}

static void quantize(const void *data, int64_t index) {
  const struct elements *all = data;
  const int64_t begin = index * PART, count = min(all->count - begin, PART);
  const float *x = (const float *)all->x + begin;
  uint8_t *out = (uint8_t *)all->out + begin;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) store_bytes(out + i, quantized(all, load(x + i)));
  if (i == count) return;
  uint8_t rest[LANES];
  store_bytes(rest, quantized(all, load_part(x + i, count - i, 0)));
  memcpy(out + i, rest, (size_t)(count - i));
}

static void dequantize(const void *data, int64_t index) {
  const struct elements *all = data;
  const int64_t begin = index * PART, count = min(all->count - begin, PART);
  const uint8_t *x = (const uint8_t *)all->x + begin;
  float *out = (float *)all->out + begin;
  const uint8_t flip = all->type == DSO_OP_INT8 ? 0x80 : 0;
  const int32_t zero = all->zero + flip;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES) {
    const words found = (bytes_at(x + i) ^ flip) - zero;
    store(out + i, __builtin_convertvector(found, vec) * splat(all->scale));
  }
  for (; i < count; i++) out[i] = (float)((x[i] ^ flip) - zero) * all->scale;
}

int dso_op_quantize(const float *x, int64_t count, const float *scale, const void *zero,
                    enum dso_op_type type, void *out) {
  const struct elements all = {x, out, count, *scale, integer_at(zero, type, 0), type};
  return dso_op_parallel(quantize, &all, ceil_div(count, PART), count);
}

int dso_op_dequantize(const void *x, int64_t count, const float *scale, const void *zero,
                      enum dso_op_type type, float *out) {
  const struct elements all = {x, out, count, *scale, integer_at(zero, type, 0), type};
  return dso_op_parallel(dequantize, &all, ceil_div(count, PART), count);
}

int dso_op_quantize_range(const float *x, int64_t count, float *scale, uint8_t *zero) {
  vec low = splat(0), high = splat(0);
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    low = lesser(low, load(x + i)), high = greater(high, load(x + i));
  const vec rest = load_part(x + i, count - i, 0);
  low = lesser(low, rest), high = greater(high, rest);
  const float first = -greatest_lane(-low), last = greatest_lane(high);
  *scale = first == last ? 1 : (last - first) / 255;
  const vec zeros = at_most(at_least(splat(-first / *scale), 0), 255);
  *zero = (uint8_t)nearest(zeros)[0];
  return 0;
}
