/* The primitives of a blob: integers, strings and counts. */
#include "blob/reader.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "blob/key.h"

static _Thread_local size_t last_place;

size_t reader_take_place(void) {
  size_t place = last_place;
  last_place = 0;
  return place;
}

int reader_fail(const struct reader *self, size_t at, const char *format, ...) {
  struct text text = {0};
  last_place = at;
  va_list values;
  va_start(values, format);
  char *what = heap_format_list(format, values);
  va_end(values);
  if (self->path != NULL && *self->path != '\0') text_format(&text, "%s: ", self->path);
  text_format(&text, "%s at 0x%zx: ", self->where, at);
  if (what != NULL) text_add(&text, what, strlen(what));
  text.is_broken |= what == NULL;
  free(what);
  return text_raise(&text, "BlobFormatError");
}

/* ---- Integers: little-endian on every machine */

int reader_skip(struct reader *self, uint64_t nbytes, const char *what, const uint8_t **bytes) {
  size_t left = reader_remaining(self);
  if (nbytes > left) {
    (void)reader_fail(self, self->offset, "%s of %llu bytes, expected at most %zu left", what,
                      (unsigned long long)nbytes, left);
    return -1; /* here, so that static analysis sees it */
  }
  *bytes = self->bytes + self->offset;
  self->offset += (size_t)nbytes;
  return 0;
}

int reader_raw(struct reader *self, uint64_t nbytes, const char *what, const uint8_t **bytes) {
  if (reader_skip(self, nbytes, what, bytes) != 0) return -1;
  if (self->proof == NULL || self->proof->prove(self->proof, *bytes, (size_t)nbytes, 1) == 0)
    return 0;
  return raised_format("VerifyError", "%s at 0x%zx: not as signed", self->where,
                       (size_t)(*bytes - self->bytes));
}

static int read_number(struct reader *self, size_t nbytes, uint64_t *value) {
  const uint8_t *bytes;
  if (reader_raw(self, nbytes, "an integer", &bytes) != 0) return -1;
  *value = 0;
  for (size_t i = nbytes; i-- > 0;) *value = *value << 8 | bytes[i];
  return 0;
}

int reader_u64(struct reader *self, uint64_t *value) {
  return read_number(self, sizeof *value, value);
}

int reader_i64(struct reader *self, int64_t *value) {
  uint64_t bits;
  if (reader_u64(self, &bits) != 0) return -1;
  memcpy(value, &bits, sizeof *value);
  return 0;
}

int reader_u32(struct reader *self, uint32_t *value) {
  uint64_t bits;
  if (read_number(self, sizeof *value, &bits) != 0) return -1;
  *value = (uint32_t)bits;
  return 0;
}

int reader_i32(struct reader *self, int32_t *value) {
  uint32_t bits;
  if (reader_u32(self, &bits) != 0) return -1;
  memcpy(value, &bits, sizeof *value);
  return 0;
}

int reader_dtype(struct reader *self, DLDataType *dtype) {
  const uint8_t *bytes;
  if (reader_raw(self, 4, "a data type", &bytes) != 0) return -1;
  *dtype = (DLDataType){
      .code = bytes[0], .bits = bytes[1], .lanes = (uint16_t)(bytes[2] | bytes[3] << 8)};
  return 0;
}

/* ---- Bytes and text */

static int read_length(struct reader *self, uint64_t *nbytes) {
  size_t start = self->offset;
  if (reader_u64(self, nbytes) != 0) return -1;
  if (*nbytes <= reader_remaining(self)) return 0;
  (void)reader_fail(self, start, "a length of %llu bytes, expected at most %zu left",
                    (unsigned long long)*nbytes, reader_remaining(self));
  return -1;
}

int reader_bytes(struct reader *self, struct span *bytes) {
  const uint8_t *data;
  uint64_t nbytes;
  if (read_length(self, &nbytes) != 0) return -1;
  if (reader_raw(self, nbytes, "bytes", &data) != 0) return -1;
  *bytes = (struct span){.data = (const char *)data, .size = (size_t)nbytes};
  return 0;
}

int reader_string(struct reader *self, struct span *text) { return reader_bytes(self, text); }

int span_compare(struct span a, struct span b) {
  size_t least = a.size < b.size ? a.size : b.size;
  int order = least > 0 ? memcmp(a.data, b.data, least) : 0;
  return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

char *span_copy(struct span text) {
  char *copy = heap_new(text.size + 1);
  if (copy == NULL) return raised_null("OutOfMemoryError", "no memory for a text of the blob");
  if (text.size > 0) memcpy(copy, text.data, text.size);
  copy[text.size] = '\0';
  return copy;
}

/* ---- Sizes */

int reader_count(struct reader *self, size_t min_nbytes, uint64_t most, size_t *count) {
  uint64_t found;
  size_t start = self->offset;
  if (reader_u64(self, &found) != 0) return -1;
  uint64_t limit = reader_remaining(self) / min_nbytes;
  if (most < limit) limit = most;
  if (found > limit)
    return reader_fail(self, start, "a count of %llu elements, expected at most %llu",
                       (unsigned long long)found, (unsigned long long)limit);
  *count = (size_t)found;
  return 0;
}

int reader_sized(struct reader *self, struct reader *inner) {
  uint64_t nbytes;
  if (read_length(self, &nbytes) != 0) return -1;
  *inner = *self;
  self->offset += (size_t)nbytes;
  inner->end = self->offset;
  inner->is_last_entry = 1;
  return 0;
}

int reader_ends_entry(const struct reader *self) {
  struct reader next = *self;
  uint64_t nbytes;
  const uint8_t *key;
  size_t left = reader_remaining(self);
  if (self->is_last_entry || left == 0) return left == 0;
  if (left < 9 || reader_u64(&next, &nbytes) != 0 || nbytes > KEY_MOST_NBYTES ||
      nbytes > reader_remaining(&next) || reader_raw(&next, nbytes, "a key", &key) != 0)
    return 0;
  return key_is_valid((struct span){(const char *)key, (size_t)nbytes});
}
