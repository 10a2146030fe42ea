/* How much an untrusted JSON text would make a parser build. */
#pragma once

#include <stddef.h>

struct json_counts {
  size_t depth;  /* greatest nesting of brackets and braces */
  size_t values; /* an upper bound */
  size_t digits; /* of the longest number */
};

/* Count in one pass, in constant memory. The text is not validated; the parser does that. */
struct json_counts json_count(const char *text, size_t nbytes);
