/* Depth, size and longest number of a JSON text, in one pass. */
#include "scan/json_limits.h"

/* `at` follows a string's opening quote. Return the index of its closing quote, or the end. */
static size_t skip_string(const char *text, size_t nbytes, size_t at) {
  while (at < nbytes && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return at;
}

static void at_least(size_t *largest, size_t found) {
  if (found > *largest) *largest = found;
}

struct json_counts json_count(const char *text, size_t nbytes) {
  struct json_counts counts = {.depth = 0, .values = 1, .digits = 0};
  size_t depth = 0, digits = 0;
  for (size_t at = 0; at < nbytes; at++) {
    char c = text[at];
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    at_least(&counts.digits, digits);
    if (c == '"') at = skip_string(text, nbytes, at + 1);
    else if (c == '[' || c == '{') at_least(&counts.depth, ++depth);
    else if ((c == ']' || c == '}') && depth > 0) depth--;
    counts.values += c == ',' || c == '[' || c == '{';
  }
  return counts;
}
