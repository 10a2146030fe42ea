/* Products beyond 64 bits, in limbs of nine digits. */
#include "blob/decimal.h"

static const uint32_t BASE = 1000000000;

struct decimal decimal_of(uint32_t number) {
  return (struct decimal){.count = 1, .limbs = {number}};
}

void decimal_multiply(struct decimal *self, uint64_t factor) {
  struct decimal product = {.count = 1};
  for (int i = 0; i < self->count; i++) {
    uint64_t rest = factor, carry = 0;
    for (int at = i; (rest > 0 || carry > 0) && at < DECIMAL_LIMBS; at++, rest /= BASE) {
      uint64_t sum = product.limbs[at] + self->limbs[i] * (rest % BASE) + carry;
      product.limbs[at] = (uint32_t)(sum % BASE);
      carry = sum / BASE;
      if (product.limbs[at] > 0 && at >= product.count) product.count = at + 1;
    }
  }
  *self = product;
}

void decimal_show(const struct decimal *self, struct text *text) {
  text_format(text, "%u", (unsigned)self->limbs[self->count - 1]);
  for (int i = self->count - 1; i-- > 0;) text_format(text, "%09u", (unsigned)self->limbs[i]);
}
