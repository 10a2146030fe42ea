/* The manifest of a library: a small JSON text with the place of each entry of its blob.
 *
 *     {"schema": 1, "producer": "dso-packer 0.2.0", "target": "x86_64-linux-gnu",
 *      "entries": [{"type_key": "cuda", "offset": 20, "nbytes": 225}, ...]} */
#include "blob/manifest.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"

#define MANIFEST "__packer_manifest"

enum { SCHEMA = 1, MOST_NBYTES = 100000000 };

static int fail(const char *path, const char *what) {
  struct text text = {0};
  if (path != NULL && *path != '\0') text_format(&text, "%s: ", path);
  text_format(&text, "%s at 0x0: %s, expected a manifest", MANIFEST, what);
  return text_raise(&text, "BlobFormatError");
}

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for %s", MANIFEST);
}

/* ---- Fields */

static int is_size(const struct json *value) {
  return value->type == JSON_INTEGER && value->integer >= 0;
}

static int is_text(const struct json *value) { return value->type == JSON_TEXT; }

static int is_list(const struct json *value) { return value->type == JSON_LIST; }

/* Returns the field, or NULL with the reason added to `wrong`. */
static const struct json *field(const struct json *object, const char *name,
                                int (*is_valid)(const struct json *), const char *expected,
                                struct text *wrong) {
  static const struct json none = {.type = JSON_NULL};
  const struct json *value = object->type == JSON_OBJECT ? json_member(object, name) : NULL;
  if (value != NULL && is_valid(value)) return value;
  text_format(wrong, "%s ", name);
  json_shown(wrong, value != NULL ? value : &none);
  text_format(wrong, ", expected %s", expected);
  return NULL;
}

static int read_entry(const struct json *fields, struct manifest_entry *entry, struct text *wrong) {
  const struct json *offset = field(fields, "offset", is_size, "a size", wrong);
  if (offset == NULL) return -1;
  const struct json *nbytes = field(fields, "nbytes", is_size, "a size", wrong);
  if (nbytes == NULL) return -1;
  entry->offset = (uint64_t)offset->integer;
  entry->end = entry->offset + (uint64_t)nbytes->integer;
  entry->type_key = field(fields, "type_key", is_text, "a text", wrong);
  return entry->type_key != NULL ? 0 : -1;
}

static int read_schema(const struct json *fields, struct text *wrong) {
  const struct json *schema = field(fields, "schema", is_size, "a size", wrong);
  if (schema == NULL) return -1;
  if (schema->integer == SCHEMA) return 0;
  text_format(wrong, "schema %lld, expected %d; install a newer runtime",
              (long long)schema->integer, SCHEMA);
  return -1;
}

/* Returns 0, or -1 with the reason in `wrong`, which is empty without memory. */
static int read_fields(struct manifest *self, struct text *wrong) {
  if (read_schema(self->fields, wrong) != 0) return -1;
  const struct json *entries = field(self->fields, "entries", is_list, "a list", wrong);
  if (entries == NULL) return -1;
  self->entries = heap_new(entries->size * sizeof *self->entries + 1);
  if (self->entries == NULL) return -1;
  for (; self->count < entries->size; self->count++) {
    self->entries[self->count].index = self->count;
    if (read_entry(&entries->items[self->count], &self->entries[self->count], wrong) != 0)
      return -1;
  }
  if (field(self->fields, "producer", is_text, "a text", wrong) == NULL) return -1;
  return field(self->fields, "target", is_text, "a text", wrong) != NULL ? 0 : -1;
}

/* ---- The table of entries */

static int compare(const void *left, const void *right) {
  const struct manifest_entry *a = left, *b = right;
  if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
  return a->index < b->index ? -1 : 1;
}

int manifest_parse(struct manifest *self, struct span text, const char *path) {
  char error[JSON_ERROR_SIZE];
  struct text wrong = {0};
  size_t nbytes = text.size <= MOST_NBYTES ? text.size : MOST_NBYTES + 1;
  while (nbytes > 0 && text.data[nbytes - 1] == '\0') nbytes--;
  self->fields = json_parse(text.data, nbytes, error);
  if (self->fields == NULL) return *error == '\0' ? no_memory() : fail(path, error);
  int status = read_fields(self, &wrong);
  if (status != 0) status = wrong.data == NULL ? no_memory() : fail(path, text_of(&wrong));
  text_free(&wrong);
  if (status == 0) qsort(self->entries, self->count, sizeof *self->entries, compare);
  return status;
}

void manifest_clear(struct manifest *self) {
  json_free(self->fields);
  free(self->entries);
  *self = (struct manifest){0};
}

/* The last entry with this offset, or NULL. */
static const struct manifest_entry *find(const struct manifest *self, uint64_t offset) {
  size_t low = 0, high = self->count; /* those before `low` are at `offset` at most */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (self->entries[middle].offset <= offset) low = middle + 1;
    else high = middle;
  }
  return low > 0 && self->entries[low - 1].offset == offset ? &self->entries[low - 1] : NULL;
}

int manifest_skip(const struct manifest *self, struct reader *reader, struct span key, size_t start,
                  struct span *payload) {
  const uint8_t *bytes;
  const struct manifest_entry *entry = find(self, start);
  const struct json *listed = entry != NULL ? entry->type_key : NULL;
  if (listed == NULL || listed->size != key.size || memcmp(listed->text, key.data, key.size) != 0 ||
      entry->end < reader->offset)
    return reader_fail(reader, start, "entry '%.*s' that " MANIFEST " does not list", (int)key.size,
                       key.data);
  size_t from = reader->offset;
  if (reader_raw(reader, entry->end - from, "a payload", &bytes) != 0) return -1;
  *payload = (struct span){.data = (const char *)bytes, .size = reader->offset - from};
  if (reader_ends_entry(reader)) return 0;
  return reader_fail(reader, reader->offset,
                     "the end of '%.*s' in " MANIFEST ", expected the next key", (int)key.size,
                     key.data);
}
