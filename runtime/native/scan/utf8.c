/* A check that bytes are UTF-8, with the texts of Python's decoder. */
#include "scan/utf8.h"

#include <stdint.h>
#include <string.h>

/* The length of the character that `first` begins; 0 if none begins with it. */
static size_t length_of(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

/* True if `second` may follow `first`: no overlong form, no surrogate, nothing beyond U+10FFFF. */
static int may_follow(uint8_t first, uint8_t second) {
  uint8_t least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

/* Check the character at the start of `at`. Returns its length, or 0 with the error. */
static size_t check_one(const uint8_t *at, size_t nbytes, struct utf8_error *error) {
  size_t length = length_of(at[0]), good = 1;
  error->reason = "invalid start byte";
  error->end = 1;
  if (length == 0) return 0;
  for (; good < length && good < nbytes; good++) {
    if (good == 1 ? may_follow(at[0], at[1]) : (at[good] & 0xc0) == 0x80) continue;
    error->reason = "invalid continuation byte";
    error->end = good;
    return 0;
  }
  if (good == length) return length;
  error->reason = "unexpected end of data";
  error->end = nbytes;
  return 0;
}

/* The number of leading ASCII bytes, in steps of eight. */
static size_t skip_ascii(const uint8_t *bytes, size_t nbytes) {
  size_t at = 0;
  for (uint64_t word; at + sizeof word <= nbytes; at += sizeof word) {
    memcpy(&word, bytes + at, sizeof word);
    if ((word & UINT64_C(0x8080808080808080)) != 0) break;
  }
  return at;
}

int utf8_check(const char *text, size_t nbytes, struct utf8_error *error) {
  const uint8_t *bytes = (const uint8_t *)text;
  for (size_t at = skip_ascii(bytes, nbytes), length; at < nbytes; at += length) {
    if ((length = check_one(bytes + at, nbytes - at, error)) > 0) continue;
    error->start = at;
    error->end += at;
    return -1;
  }
  return 0;
}

size_t utf8_count(const char *text, size_t nbytes) {
  size_t count = 0;
  for (size_t at = 0; at < nbytes; at++) count += ((uint8_t)text[at] & 0xc0) != 0x80;
  return count;
}
