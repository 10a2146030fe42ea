/* IEEE 754 binary16. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

/* Return the nearest half, ties to even. Numbers from 65520 on become infinity. */
static inline uint16_t half_of(double number) {
  enum { MANTISSA = 10, MIN_EXPONENT = -14, BIAS = 15, INFINITE = 0x7c00, QUIET = 0x7e00 };
  uint16_t sign = signbit(number) ? 0x8000 : 0;
  int exponent;
  if (isnan(number)) return (uint16_t)(sign | QUIET);
  double magnitude = fabs(number);
  if (magnitude >= 65520) return (uint16_t)(sign | INFINITE);
  if (magnitude == 0) return sign;
  (void)frexp(magnitude, &exponent); /* magnitude = fraction * 2^exponent, fraction in [0.5, 1) */
  exponent = exponent - 1 < MIN_EXPONENT ? MIN_EXPONENT : exponent - 1;
  /* In units of the last place, 2^(exponent - 10); rint rounds ties to even. A mantissa that rounds
   * up to 2^11 correctly carries into the exponent. */
  uint32_t units = (uint32_t)rint(ldexp(magnitude, MANTISSA - exponent));
  return (uint16_t)(sign | (units + ((uint32_t)(exponent + BIAS - 1) << MANTISSA)));
}

/* The value of a half. */
static inline double half_value(uint16_t half) {
  enum { MANTISSA = 10, REBIAS = 127 - 15, LARGEST = 0x1f };
  uint32_t exponent = half >> MANTISSA & LARGEST, fraction = half & ((1 << MANTISSA) - 1);
  float magnitude = (float)fraction * 0x1p-24F;
  if (exponent > 0) {
    uint32_t bits = (exponent == LARGEST ? 0xff : exponent + REBIAS) << 23 | fraction << 13;
    memcpy(&magnitude, &bits, sizeof bits);
  }
  return half >> 15 ? -(double)magnitude : (double)magnitude;
}
