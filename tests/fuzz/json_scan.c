/* The scans of JSON that is not parsed yet: depth, values and digits, and the end of a safetensors
 * header. Each input is a block of exactly its size. */
#include <stdlib.h>
#include <string.h>

#include "scan/json_limits.h"
#include "scan/weights_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  uint8_t *text = malloc(nbytes > 0 ? nbytes : 1);
  memcpy(text, data, nbytes);
  struct json_counts counts = json_count((const char *)text, nbytes);
  if (counts.depth > nbytes || counts.values > nbytes + 1 || counts.digits > nbytes) abort();
  if (weights_data_nbytes(text, nbytes) < -1) abort();
  free(text);
  return 0;
}
