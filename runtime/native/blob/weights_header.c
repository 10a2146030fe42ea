/* The header of a safetensors file: JSON, checked against every rule of the format. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "blob/weights_entry.h"
#include "scan/json.h"
#include "scan/utf8.h"

const char weights_metadata_key[] = "__metadata__";

/* ---- JSON */

static int fail(const struct reader *reader, size_t at, struct text *text) {
  int status = text->is_broken ? raised_format("OutOfMemoryError", "no memory for weights")
                               : reader_fail(reader, at, "%s", text_of(text));
  text_free(text);
  return status;
}

/* The number of bytes of the first `count` characters. */
static size_t cut(struct span text, size_t count) {
  size_t at = 0;
  for (; at < text.size; at++)
    if (((uint8_t)text.data[at] & 0xc0) != 0x80 && count-- == 0) break;
  return at;
}

static int check_begin(const struct reader *reader, struct span header, size_t start) {
  struct utf8_error error;
  if (utf8_check(header.data, header.size, &error) != 0)
    return reader_fail(reader, start + error.start, "header is not UTF-8, expected JSON");
  if (header.size > 0 && *header.data == '{') return 0;
  struct text text = {0};
  text_format(&text, "header ");
  text_shown_json(&text, header.data, cut(header, 40));
  text_format(&text, ", expected to begin with '{'");
  return fail(reader, start, &text);
}

static const struct json *parse(const struct reader *reader, struct span header, size_t start) {
  if (check_begin(reader, header, start) != 0) return NULL;
  struct json_error error;
  const struct json *fields = json_decode(header.data, header.size, &error);
  if (fields != NULL) return fields;
  if (error.text[0] == '\0') (void)raised_format("OutOfMemoryError", "no memory for weights");
  else if (error.is_syntax)
    (void)reader_fail(reader, start + error.at, "header is not JSON: %s", error.text);
  else (void)reader_fail(reader, start, "header is not JSON of this format: %s", error.text);
  return NULL;
}

/* ---- Names and metadata */

static int is_surrogate(const char *text) {
  return (uint8_t)text[0] == 0xed && (uint8_t)text[1] >= 0xa0;
}

static int has_only_texts(const struct json *object) {
  for (size_t i = 0; i < object->size; i++)
    if (object->items[2 * i + 1].type != JSON_TEXT) return 0;
  return 1;
}

static int check_metadata(struct text *text, const struct json *metadata) {
  if (metadata == NULL || (metadata->type == JSON_OBJECT && has_only_texts(metadata))) return 0;
  text_format(text, "%s ", weights_metadata_key);
  json_shown(text, metadata);
  text_format(text, ", expected text by name");
  return -1;
}

/* Refuse half a surrogate pair, which JSON can encode. */
static int check_text(struct text *text, const struct json *value) {
  struct utf8_error error;
  if (utf8_check(value->text, value->size, &error) == 0) return 0;
  size_t end = error.start;
  while (value->size - end >= 3 && is_surrogate(value->text + end)) end += 3;
  text_format(text, "a lone surrogate ");
  text_shown_json(text, value->text + error.start, end - error.start);
  text_format(text, " in a name, expected Unicode");
  return -1;
}

/* Check every second item of an object: its keys, or from 1 on its values. */
static int check_texts(struct text *text, const struct json *object, size_t first) {
  for (size_t i = first; i < 2 * object->size; i += 2)
    if (check_text(text, &object->items[i]) != 0) return -1;
  return 0;
}

static int check_names(struct text *text, const struct json *fields) {
  const struct json *metadata = json_member(fields, weights_metadata_key);
  if (check_metadata(text, metadata) != 0 || check_texts(text, fields, 0) != 0) return -1;
  if (metadata == NULL) return 0;
  return check_texts(text, metadata, 0) != 0 ? -1 : check_texts(text, metadata, 1);
}

/* ---- Memory: one block with the items, their order, shapes, strides and names */

struct block {
  struct weights weights;
  int64_t *dims;
  char *names;
};

static int is_tensor(const struct json *key) { return !json_is_text(key, weights_metadata_key); }

static struct block *make_block(const struct json *fields) {
  size_t count = 0, num_dims = 0, names_size = 0;
  for (size_t i = 0; i < fields->size; i++) {
    const struct json *key = &fields->items[2 * i];
    if (!is_tensor(key)) continue;
    count++;
    names_size += key->size + 1;
    num_dims += 2 * weights_entry_ndim(key + 1);
  }
  struct block *block =
      heap_new(sizeof *block + count * sizeof(struct weight) + count * sizeof(struct weight *) +
               num_dims * sizeof(int64_t) + names_size);
  if (block == NULL) return NULL;
  struct weight *items = (struct weight *)(block + 1);
  struct weight **by_name = (struct weight **)(items + count);
  block->weights = (struct weights){.count = count, .items = items, .by_name = by_name};
  block->dims = (int64_t *)(by_name + count);
  block->names = (char *)(block->dims + num_dims);
  return block;
}

static void add_name(struct block *block, struct weight *weight, const struct json *key) {
  memcpy(block->names, key->text, key->size + 1);
  weight->name = (struct span){block->names, key->size};
  block->names += key->size + 1;
}

static int add_tensors(struct block *block, const struct json *fields, struct text *text) {
  struct weight *weight = block->weights.items;
  for (size_t i = 0; i < fields->size; i++) {
    const struct json *key = &fields->items[2 * i];
    if (!is_tensor(key)) continue;
    if (weights_entry_read(key, block->dims, weight, text) != 0) return -1;
    add_name(block, weight, key);
    block->weights.by_name[weight - block->weights.items] = weight;
    block->dims += 2 * (size_t)weight->tensor.ndim;
    weight++;
  }
  return 0;
}

/* ---- Order */

static int compare_places(const void *a, const void *b) {
  const struct weight *left = *(const struct weight *const *)a;
  const struct weight *right = *(const struct weight *const *)b;
  if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
  if (left->end != right->end) return left->end < right->end ? -1 : 1;
  return (left > right) - (left < right);
}

static int compare_names(const void *a, const void *b) {
  const struct weight *left = *(const struct weight *const *)a;
  const struct weight *right = *(const struct weight *const *)b;
  return span_compare(left->name, right->name);
}

/* Check that the tensors cover the data area; store the offset at which the last one ends. */
static int check_coverage(const struct weights *self, struct text *text, uint64_t *nbytes) {
  *nbytes = 0;
  if (self->count > 0) qsort(self->by_name, self->count, sizeof *self->by_name, compare_places);
  for (size_t i = 0; i < self->count; i++) {
    const struct weight *weight = self->by_name[i];
    if (weight->begin != *nbytes) {
      weights_entry_wrong(text, weight->name, "data_offsets");
      text_format(text, "%" PRIu64 " (%s), found [%" PRIu64 ", %" PRIu64 "]", *nbytes,
                  weight->begin > *nbytes ? "a hole" : "an overlap", weight->begin, weight->end);
      return -1;
    }
    *nbytes = weight->end;
  }
  if (self->count > 0) qsort(self->by_name, self->count, sizeof *self->by_name, compare_names);
  return 0;
}

struct weights *weights_read_header(const struct reader *reader, struct span header, size_t start,
                                    uint64_t *nbytes, const struct json **kept) {
  const struct json *fields = parse(reader, header, start);
  if (fields == NULL) return NULL;
  struct text text = {0};
  struct block *block = NULL;
  int status = check_names(&text, fields);
  if (status == 0 && (block = make_block(fields)) == NULL)
    status = raised_format("OutOfMemoryError", "no memory for weights");
  else if (status != 0 || add_tensors(block, fields, &text) != 0 ||
           check_coverage(&block->weights, &text, nbytes) != 0)
    status = fail(reader, start, &text);
  if (status == 0 && kept != NULL) *kept = fields;
  else json_free(fields);
  if (status == 0) return &block->weights;
  free(block);
  return NULL;
}
