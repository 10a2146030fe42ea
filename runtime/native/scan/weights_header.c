/* A scan of a safetensors header for "data_offsets" and the number pairs after it. */
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

/* Take the rest of a string after its opening quote; escapes stay as written. */
static bool take_string(struct scan *scan, const uint8_t **start, uint64_t *length) {
  *start = scan->at;
  for (; scan->at < scan->end && *scan->at != '"'; scan->at++) {
    if (*scan->at != '\\') continue;
    scan->at++;
    if (scan->at == scan->end) return false;
  }
  *length = (uint64_t)(scan->at - *start);
  return take(scan, '"');
}

/* Take a whole number. Leading zeros pass here; the full check refuses them. */
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
    if (memchr(start, '\\', (size_t)length) != NULL) return -1; /* escapes may spell the key */
    if (length != sizeof KEY - 1 || memcmp(start, KEY, sizeof KEY - 1) != 0) continue;
    if (!take(&scan, ':')) continue; /* a value */
    if (!take_offsets(&scan, &end)) return -1;
    if (end > greatest) greatest = end;
  }
  return greatest;
}
