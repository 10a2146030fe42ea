/* Arrays with names: vector<string> names, u64 n, n x NDArray. */
#include "blob/arrays.h"
#include "blob/name_order.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "scan/utf8.h"

static const uint64_t PARAMS_MAGIC = UINT64_C(0xf7e58d4f05049cb7);

enum { MOST_LISTED = 8 };

struct names {
  size_t count, nbytes; /* nbytes: of all names */
  struct span *items;   /* views of the blob */
};

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for the arrays of a blob");
}

/* ---- Names, which must be distinct and not empty */

/* Returns 1, 0 if a name is empty or occurs twice, or -1 with the error raised. */
static int are_valid(const struct names *self) {
  struct name_order order;
  if (name_order_make(&order, self->items, self->count, sizeof *self->items) != 0) return -1;
  int is_valid = name_order_repeated(&order) == NO_NAME;
  if (self->count > 0) is_valid &= order.sorted[0].text.size > 0;
  name_order_free(&order);
  return is_valid;
}

static int refuse_names(const struct reader *reader, size_t at, const struct names *self) {
  struct text text = {0};
  for (size_t i = 0; i < self->count && i < MOST_LISTED; i++) {
    if (i > 0) text_add(&text, ", ", 2);
    text_shown(&text, self->items[i].data, self->items[i].size);
  }
  if (self->count > MOST_LISTED) text_format(&text, " and %zu more", self->count - MOST_LISTED);
  (void)reader_fail(reader, at, "array names %s, expected distinct ones that are not empty",
                    text_of(&text));
  text_free(&text);
  return -1;
}

/* On failure the caller still frees the items. */
static int read_names(struct reader *reader, struct names *self) {
  size_t start = reader->offset;
  if (reader_count(reader, 8, UINT64_MAX, &self->count) != 0) return -1;
  self->items = heap_new(self->count * sizeof *self->items + 1);
  if (self->items == NULL) return no_memory();
  for (size_t i = 0; i < self->count; i++) {
    if (reader_string(reader, &self->items[i]) != 0) return -1;
    self->nbytes += self->items[i].size;
  }
  int is_valid = are_valid(self);
  if (is_valid == 0) return refuse_names(reader, start, self);
  return is_valid > 0 ? 0 : -1;
}

/* ---- Arrays. One block has the items and, after them, the names. */

static int start_arrays(const struct names *names, struct named_arrays *arrays) {
  size_t nbytes = names->count * sizeof *arrays->items;
  arrays->items = heap_new(nbytes + names->nbytes + names->count + 1);
  if (arrays->items == NULL) return no_memory();
  char *text = (char *)arrays->items + nbytes;
  for (size_t i = 0; i < names->count; i++) {
    struct span name = names->items[i];
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    arrays->items[i] = (struct named_array){.name = {text, name.size}};
    text += name.size + 1;
  }
  return 0;
}

static int read_items(struct reader *reader, const struct names *names, uint64_t count,
                      size_t start, struct named_arrays *arrays) {
  if (count != names->count)
    return reader_fail(reader, start, "%llu arrays for %zu names, expected as many",
                       (unsigned long long)count, names->count);
  if (start_arrays(names, arrays) != 0) return -1;
  for (; arrays->count < names->count; arrays->count++) {
    dso_tensor_object *tensor = reader_ndarray(reader);
    if (tensor == NULL) return -1;
    arrays->items[arrays->count].tensor = tensor;
  }
  return 0;
}

/* `count` NULL: it follows the names. */
static int read_arrays(struct reader *reader, const uint64_t *count, size_t start,
                       struct named_arrays *arrays) {
  struct names names = {0};
  uint64_t found = count != NULL ? *count : 0;
  *arrays = (struct named_arrays){0};
  int status = read_names(reader, &names);
  if (status == 0 && count == NULL) {
    start = reader->offset;
    status = reader_u64(reader, &found);
  }
  if (status == 0) status = read_items(reader, &names, found, start, arrays);
  free(names.items);
  if (status != 0) named_arrays_clear(arrays);
  return status;
}

int named_arrays_read(struct reader *reader, struct named_arrays *arrays) {
  return read_arrays(reader, NULL, 0, arrays);
}

int named_arrays_read_counted(struct reader *reader, uint64_t count, size_t start,
                              struct named_arrays *arrays) {
  return read_arrays(reader, &count, start, arrays);
}

void named_arrays_clear(struct named_arrays *arrays) {
  for (size_t i = 0; i < arrays->count; i++) object_release(&arrays->items[i].tensor->object);
  free(arrays->items);
  *arrays = (struct named_arrays){0};
}

/* ---- Params dict files: u64 magic, u64 reserved 0, then the named arrays */

static int read_params_header(struct reader *reader) {
  uint64_t magic, reserved;
  if (reader_u64(reader, &magic) != 0) return -1;
  if (magic != PARAMS_MAGIC)
    return reader_fail(reader, 0, "params magic 0x%llx, expected 0x%llx", (unsigned long long)magic,
                       (unsigned long long)PARAMS_MAGIC);
  if (reader_u64(reader, &reserved) != 0) return -1;
  if (reserved == 0) return 0;
  return reader_fail(reader, 8, "params reserved 0x%llx, expected 0x0",
                     (unsigned long long)reserved);
}

static int check_params(const struct reader *reader, size_t start,
                        const struct named_arrays *arrays) {
  struct utf8_error error;
  for (size_t i = 0; i < arrays->count; i++)
    if (utf8_check(arrays->items[i].name.data, arrays->items[i].name.size, &error) != 0)
      return reader_fail(reader, start, "array names, expected UTF-8");
  if (reader_remaining(reader) == 0) return 0;
  return reader_fail(reader, reader->offset, "%zu bytes after the last array, expected none",
                     reader_remaining(reader));
}

int named_arrays_read_params(const void *bytes, size_t nbytes, dso_object *owner,
                             struct named_arrays *arrays) {
  struct reader reader = {.bytes = bytes, .end = nbytes, .owner = owner, .where = "params"};
  *arrays = (struct named_arrays){0};
  if (read_params_header(&reader) != 0) return -1;
  size_t start = reader.offset;
  if (named_arrays_read(&reader, arrays) != 0) return -1;
  int status = check_params(&reader, start, arrays);
  if (status != 0) named_arrays_clear(arrays);
  return status;
}
