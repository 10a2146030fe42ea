/* unicode.h: what Numba's functions of text know of a character. */
#ifndef DSO_PACKER_NUMBA_UNICODE_H
#define DSO_PACKER_NUMBA_UNICODE_H

#include <stdint.h>

enum { NB_UNICODE_BLOCK = 128, NB_UNICODE_CHARACTERS = 0x110000 };

/* The other cases are characters, differences from this one, or places in the table of characters
 * with several letters in another case; the flags say which, and the classes. */
struct nb_unicode_record {
  int32_t upper, lower, title;
  uint8_t decimal, digit;
  uint16_t flags;
};

#endif
