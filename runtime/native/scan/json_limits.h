/* How much JSON from a stranger asks for, found out before a parser builds it. No Python.h. */
#ifndef DSO_PACKER_SCAN_JSON_LIMITS_H
#define DSO_PACKER_SCAN_JSON_LIMITS_H

#include <stddef.h>

struct json_counts {
  size_t depth;  /* brackets and braces that are open at once, at most */
  size_t values; /* no fewer than there are */
  size_t digits; /* of the longest number */
};

/* Count in one pass, in constant memory; whether it is JSON at all is for the parser to say. */
struct json_counts json_count(const char *text, size_t nbytes);

#endif
