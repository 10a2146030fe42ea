/* A scan for strings and the number pairs behind those that say "data_offsets". */

#include "scan/weights_header.h"

#include <stdbool.h>
#include <string.h>

struct scan {
  const uint8_t *at, *end;
};

static void skip_space(struct scan *scan) {
  while (scan->at < scan->end &&
         (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r'))
    scan->at++;
}

static bool take(struct scan *scan, uint8_t byte) {
  skip_space(scan);
  if (scan->at == scan->end || *scan->at != byte) return false;
  scan->at++;
  return true;
}

/* The rest of a string whose opening quote was taken: its bytes, escapes and all. */
static bool take_string(struct scan *scan, const uint8_t **start, uint64_t *length) {
  *start = scan->at;
  for (; scan->at < scan->end && *scan->at != '"'; scan->at++)
    if (*scan->at == '\\' && ++scan->at == scan->end) return false;
  *length = (uint64_t)(scan->at - *start);
  return take(scan, '"');
}

/* A plain whole number; JSON allows no leading zeros, and the full check refuses them. */
static bool take_number(struct scan *scan, int64_t *value) {
  skip_space(scan);
  const uint8_t *start = scan->at;
  for (*value = 0; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9'; scan->at++) {
    if (*value > (INT64_MAX - 9) / 10) return false;
    *value = *value * 10 + (*scan->at - '0');
  }
  return scan->at > start;
}

static bool take_offsets(struct scan *scan, int64_t *end) {
  int64_t begin;
  return take(scan, '[') && take_number(scan, &begin) && take(scan, ',') &&
         take_number(scan, end) && take(scan, ']');
}

int64_t weights_data_nbytes(const uint8_t *header, uint64_t nbytes) {
  static const char KEY[] = "data_offsets";
  struct scan scan = {header, header + nbytes};
  int64_t greatest = 0, end;
  while (scan.at < scan.end) {
    const uint8_t *start;
    uint64_t length;
    if (*scan.at++ != '"') continue;
    if (!take_string(&scan, &start, &length)) return -1;
    if (memchr(start, '\\', (size_t)length) != NULL) return -1; /* a key may hide in escapes */
    if (length != sizeof KEY - 1 || memcmp(start, KEY, sizeof KEY - 1) != 0) continue;
    if (!take(&scan, ':')) continue; /* a value */
    if (!take_offsets(&scan, &end)) return -1;
    if (end > greatest) greatest = end;
  }
  return greatest;
}
