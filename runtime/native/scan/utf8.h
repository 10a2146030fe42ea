/* A check that bytes are UTF-8, with the texts of Python's decoder. */
#pragma once

#include <stddef.h>

struct utf8_error {
  size_t start, end; /* of the bytes that are not UTF-8 */
  const char *reason;
};

/* Returns 0, or -1 with the first error. */
int utf8_check(const char *text, size_t nbytes, struct utf8_error *error);

/* The number of characters in valid UTF-8. */
size_t utf8_count(const char *text, size_t nbytes);
