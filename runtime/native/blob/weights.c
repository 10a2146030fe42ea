/* A safetensors file within a payload: its place, and the look-up of its tensors. */
#include "blob/weights.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "scan/weights_header.h"

enum { MAX_HEADER_NBYTES = 100000000 };

static int read_data(struct reader *reader, struct weights_file *file) {
  int64_t scanned = weights_data_nbytes((const uint8_t *)file->header.data, file->header.size);
  uint64_t nbytes = (uint64_t)scanned;
  const uint8_t *data;
  if (scanned < 0 || nbytes > reader_remaining(reader)) { /* unusual or malformed: parse it */
    struct weights *weights = weights_read_header(reader, file->header, file->start, &nbytes, NULL);
    if (weights == NULL) return -1;
    free(weights);
  }
  if (reader_skip(reader, nbytes, "tensor data", &data) != 0) return -1;
  file->data = (struct span){(const char *)data, nbytes};
  return 0;
}

int weights_file_read(struct reader *reader, struct weights_file *file) {
  size_t start = reader->offset;
  uint64_t nbytes;
  const uint8_t *header;
  if (reader_u64(reader, &nbytes) != 0) return -1;
  if (nbytes > MAX_HEADER_NBYTES)
    return reader_fail(reader, start,
                       "a safetensors header of %" PRIu64 " bytes, expected at most %d", nbytes,
                       MAX_HEADER_NBYTES);
  file->start = reader->offset;
  if (reader_raw(reader, nbytes, "a safetensors header", &header) != 0) return -1;
  file->header = (struct span){(const char *)header, nbytes};
  return read_data(reader, file);
}

struct weights *weights_parse(const struct reader *reader, const struct weights_file *file) {
  uint64_t nbytes;
  struct weights *weights = weights_read_header(reader, file->header, file->start, &nbytes, NULL);
  if (weights == NULL) return NULL;
  if (nbytes != file->data.size) {
    (void)reader_fail(reader, file->start, "tensors of %" PRIu64 " bytes, expected %zu", nbytes,
                      file->data.size);
    free(weights);
    return NULL;
  }
  for (size_t i = 0; i < weights->count; i++)
    weights->items[i].tensor.data = (char *)(uintptr_t)file->data.data + weights->items[i].begin;
  return weights;
}

const struct weight *weights_find(const struct weights *self, const char *name) {
  struct span wanted = {name, strlen(name)};
  size_t low = 0, high = self->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct weight *weight = self->by_name[middle];
    int order = span_compare(weight->name, wanted);
    if (order == 0) return weight;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return NULL;
}
