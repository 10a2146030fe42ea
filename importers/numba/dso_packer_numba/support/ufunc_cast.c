/* Conversions of arrays, as NumPy converts them for a function of elements.
 *
 * A row is converted in parts: to int64 or double, and from there to the type of the result. A
 * complex number is two numbers. */
#include "ufunc.h"

#include <string.h>

enum { PART = 256 };

/* Numbers of one row; unsigned ones are in `integers` too. */
typedef union {
  int64_t integers[PART];
  double floats[PART];
} part;

/* ---- Which conversions there are */

/* The order of NumPy's kinds: bool, unsigned, signed, floating, complex. */
static int order_of(DLDataType type) {
  switch (type.code) {
    case DSO_DT_BOOL: return 0;
    case DSO_DT_UINT: return 1;
    case DSO_DT_INT: return 2;
    default: return type.code == DSO_DT_FLOAT ? 3 : 4;
  }
}

int nb_is_safe(DLDataType from, DLDataType to) {
  int width = to.code == DSO_DT_COMPLEX ? to.bits / 2 : to.bits;
  if (from.code == to.code) return to.bits >= from.bits;
  if (from.code == DSO_DT_BOOL) return 1;
  if (order_of(from) > order_of(to)) return 0;
  if (to.code == DSO_DT_INT) return to.bits > from.bits;
  if (from.code == DSO_DT_FLOAT) return width >= from.bits;
  return width >= (from.bits > 32 ? 64 : 2 * from.bits);
}

int nb_is_same_kind(DLDataType from, DLDataType to) { return order_of(from) <= order_of(to); }

/* ---- Rows */

/* IEEE 754 binary16 */
static double half_of(uint16_t bits) {
  int exponent = bits >> 10 & 0x1F, fraction = bits & 0x3FF;
  double number = exponent == 0    ? (double)fraction * 0x1p-24
                  : exponent == 31 ? (fraction ? __builtin_nan("") : __builtin_inf())
                                   : (1024 + fraction) * 0x1p-25 * (double)(1u << exponent);
  return bits >> 15 ? -number : number;
}

/* Read `count` values of a C type, each made by an expression of `x`. */
#define READ(type, field, value)           \
  for (int64_t i = 0; i < count; i++) {    \
    type x;                                \
    memcpy(&x, from + i * step, sizeof x); \
    out->field[i] = (value);               \
  }                                        \
  break

/* Write `count` values, each an expression of `i`. */
#define WRITE(type, value)               \
  for (int64_t i = 0; i < count; i++) {  \
    type x = (type)(value);              \
    memcpy(to + i * step, &x, sizeof x); \
  }                                      \
  break

static void read_part(const char *from, int64_t step, DLDataType type, int64_t count, part *out) {
  int is_signed = type.code == DSO_DT_INT;
  if (type.code == DSO_DT_FLOAT) switch (type.bits) {
      case 16: READ(uint16_t, floats, half_of(x));
      case 32: READ(float, floats, (double)x);
      default: READ(double, floats, x);
    }
  else switch (type.bits | is_signed) {
      case 8: READ(uint8_t, integers, x);
      case 9: READ(int8_t, integers, x);
      case 16: READ(uint16_t, integers, x);
      case 17: READ(int16_t, integers, x);
      case 32: READ(uint32_t, integers, x);
      case 33: READ(int32_t, integers, x);
      default: READ(int64_t, integers, x);
    }
}

static void write_part(const part *values, DLDataType type, int64_t count, char *to, int64_t step,
                       DLDataType as) {
  int is_float = type.code == DSO_DT_FLOAT, is_unsigned = type.code == DSO_DT_UINT;
  if (as.code != DSO_DT_FLOAT) switch (as.bits) {
      case 8: WRITE(int8_t, values->integers[i]);
      case 16: WRITE(int16_t, values->integers[i]);
      case 32: WRITE(int32_t, values->integers[i]);
      default: WRITE(int64_t, values->integers[i]);
    }
  else switch (as.bits | is_float | is_unsigned << 1) {
      case 32: WRITE(float, values->integers[i]);
      case 33: WRITE(float, values->floats[i]);
      case 34: WRITE(float, (uint64_t)values->integers[i]);
      case 64: WRITE(double, values->integers[i]);
      case 65: WRITE(double, values->floats[i]);
      default: WRITE(double, (uint64_t)values->integers[i]);
    }
}

static DLDataType half_type(DLDataType type) {
  return (DLDataType){DSO_DT_FLOAT, (uint8_t)(type.bits / 2), 1};
}

static void cast_row(const char *from, int64_t from_step, DLDataType type, char *to,
                     int64_t to_step, DLDataType as, int64_t count) {
  if (as.code == DSO_DT_COMPLEX) {
    DLDataType half = half_type(as);
    int is_complex = type.code == DSO_DT_COMPLEX;
    static const double zero = 0;
    const char *imaginary = is_complex ? from + type.bits / 16 : (const char *)&zero;
    DLDataType own = is_complex ? half_type(type) : type;
    DLDataType other = is_complex ? own : (DLDataType){DSO_DT_FLOAT, 64, 1};
    cast_row(from, from_step, own, to, to_step, half, count);
    cast_row(imaginary, is_complex ? from_step : 0, other, to + as.bits / 16, to_step, half, count);
    return;
  }
  for (int64_t at = 0; at < count; at += PART) {
    part values;
    int64_t size = count - at < PART ? count - at : PART;
    read_part(from + at * from_step, from_step, type, size, &values);
    write_part(&values, type, size, to + at * to_step, to_step, as);
  }
}

/* ---- Arrays */

int64_t nb_step_of(const DLTensor *tensor, int32_t axis) {
  int64_t step = tensor->dtype.bits < 8 ? 1 : tensor->dtype.bits / 8;
  if (tensor->strides) return tensor->strides[axis] * step;
  for (int32_t i = tensor->ndim - 1; i > axis; i--) step *= tensor->shape[i];
  return step;
}

void nb_cast(const DLTensor *from, const DLTensor *to) {
  int32_t last = to->ndim - 1;
  int64_t index[NB_MOST_DIMS] = {0}, count = last < 0 ? 1 : to->shape[last];
  const char *source = (const char *)dso_address_of(from);
  char *target = (char *)dso_address_of(to);
  if (dso_is_empty(to)) return;
  for (int32_t axis = 0; axis >= 0;) {
    cast_row(source, last < 0 ? 0 : nb_step_of(from, last), from->dtype, target,
             last < 0 ? 0 : nb_step_of(to, last), to->dtype, count);
    for (axis = last - 1; axis >= 0; axis--) { /* the next row */
      int is_over = ++index[axis] == to->shape[axis];
      int64_t moved = is_over ? 1 - to->shape[axis] : 1;
      source += moved * nb_step_of(from, axis);
      target += moved * nb_step_of(to, axis);
      if (!is_over) break;
      index[axis] = 0;
    }
  }
}
