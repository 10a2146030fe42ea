/* Products beyond 64 bits, for messages. */
#pragma once

#include <stdint.h>

#include "abi/text.h"

/* 64 extents of 63 bits, a size and lanes have 1,222 digits; a limb has nine. */
enum { DECIMAL_LIMBS = 144 };

struct decimal {
  int count;
  uint32_t
      limbs[DECIMAL_LIMBS]; /* from the lowest; the last one is not 0, unless it is the first */
};

struct decimal decimal_of(uint32_t number); /* less than 10^9 */
void decimal_multiply(struct decimal *self, uint64_t factor);
void decimal_show(const struct decimal *self, struct text *text);
