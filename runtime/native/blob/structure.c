/* The structure of a blob: a text without its payloads, of which a library stores the CRC-32. */
#include <stdio.h>
#include <string.h>

#include "blob/blob.h"
#include "scan/crc32.h"

struct output {
  uint32_t crc;
  size_t used;
  char buffer[4096];
};

static void flush(struct output *self) {
  self->crc = crc32_more(self->crc, (const uint8_t *)self->buffer, self->used);
  self->used = 0;
}

static void put(struct output *self, const char *text, size_t nbytes) {
  if (nbytes > sizeof self->buffer - self->used) flush(self);
  memcpy(self->buffer + self->used, text, nbytes);
  self->used += nbytes;
}

static void put_number(struct output *self, uint64_t number) {
  char digits[24];
  int count = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  put(self, digits, (size_t)count);
}

/* Lines are separated, not ended, by a newline; the same holds for numbers and spaces. */
static void put_numbers(struct output *self, const uint64_t *numbers, size_t count) {
  put(self, "\n", 1);
  for (size_t i = 0; i < count; i++) {
    if (i > 0) put(self, " ", 1);
    put_number(self, numbers[i]);
  }
}

int blob_structure(const struct blob *blob, uint32_t *crc) {
  struct output output = {.crc = 0};
  for (size_t i = 0; i < blob->num_entries; i++) {
    const struct blob_entry *entry = &blob->entries[i];
    if (i > 0) put(&output, "\n", 1);
    put(&output, entry->key.data, entry->key.size); /* at most 255 bytes */
    put(&output, " ", 1);
    put_number(&output, entry->offset);
    put(&output, " ", 1);
    put_number(&output, entry->nbytes);
  }
  if (blob->has_tree) {
    put_numbers(&output, blob->row_ptr, blob->num_row_ptr);
    put_numbers(&output, blob->child_indices, blob->num_children);
  }
  flush(&output);
  *crc = output.crc;
  return 0;
}

int blob_check_structure(const struct reader *reader, const struct blob *blob, uint32_t expected) {
  uint32_t found;
  (void)blob_structure(blob, &found);
  if (found == expected) return 0;
  return reader_fail(reader, 0,
                     "keys, sizes or import tree with CRC-32 %08lx, expected %08lx as listed in "
                     "__packer_checksums; the file is damaged: export it again, or copy it again",
                     (unsigned long)found, (unsigned long)expected);
}
