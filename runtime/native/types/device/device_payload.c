/* The payloads of device modules, in all layouts (runtime/modules/device.py). */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "types/device/device_module.h"

static const char METAL_VERSION[] = "0.1.0";

/* CUDA accepts 32,764 bytes of arguments, others fewer; TVM has nine launch tags. */
enum { MOST_ARGUMENTS = 8192, MOST_TAGS = 256 };

/* ---- Kernels */

static int read_tags(struct reader *reader, struct kernel_row *row) {
  if (reader_count(reader, 8, MOST_TAGS, &row->num_tags) != 0) return -1;
  row->tags = heap_new_zeroed(row->num_tags + 1, sizeof *row->tags);
  if (row->tags == NULL) return raised_format("OutOfMemoryError", "no memory for launch tags");
  for (size_t i = 0; i < row->num_tags; i++)
    if (reader_string(reader, &row->tags[i]) != 0) return -1;
  return 0;
}

/* Tags of arguments: only dialect tvm-ffi has them, and nothing uses them. */
static int skip_extra_tags(struct reader *reader) {
  size_t count;
  const uint8_t *tags;
  if (reader->dialect != DIALECT_TVM_FFI) return 0;
  if (reader_count(reader, 4, MOST_ARGUMENTS, &count) != 0) return -1;
  return reader_raw(reader, 4 * count, "tags", &tags);
}

static int read_row(struct reader *reader, struct device_module *self) {
  struct kernel_row *row = &self->rows[self->num_rows];
  if (reader_string(reader, &row->key) != 0) return -1;
  row->module = self;
  self->num_rows++;
  if (reader_string(reader, &row->name) != 0 ||
      reader_count(reader, 4, MOST_ARGUMENTS, &row->num_types) != 0 ||
      reader_raw(reader, 4 * row->num_types, "types", &row->types) != 0 ||
      read_tags(reader, row) != 0)
    return -1;
  return skip_extra_tags(reader);
}

static int read_functions(struct reader *reader, struct device_module *self) {
  enum { ROW_NBYTES = 8 + 24 };
  size_t count;
  if (reader_count(reader, ROW_NBYTES, UINT64_MAX, &count) != 0) return -1;
  self->rows = heap_new_zeroed(count + 1, sizeof *self->rows);
  if (self->rows == NULL) return raised_format("OutOfMemoryError", "no memory for kernels");
  for (size_t i = 0; i < count; i++)
    if (read_row(reader, self) != 0) return -1;
  return name_order_make(&self->order, self->rows, count, sizeof *self->rows);
}

/* Of equal keys the first is kept. */
int kernel_row_counts(const struct device_module *self, size_t row) {
  const struct span *key = &self->rows[row].key;
  return name_order_find(&self->order, key->data, key->size) == row;
}

/* ---- The other fields. The code of kernels is kept where it can be launched. */

static int read_fmt(struct reader *reader, struct device_module *self) {
  return reader_string(reader, &self->fmt);
}

static int read_data(struct reader *reader, struct device_module *self) {
  return reader_bytes(reader, &self->data);
}

static int read_version(struct reader *reader, struct device_module *self) {
  size_t start = reader->offset;
  struct span version;
  struct text shown = {0};
  (void)self;
  if (reader_string(reader, &version) != 0) return -1;
  if (version.size == strlen(METAL_VERSION) &&
      memcmp(version.data, METAL_VERSION, version.size) == 0)
    return 0;
  text_repr(&shown, version.data, version.size);
  int status =
      reader_fail(reader, start, "metal version %s, expected '%s'", text_of(&shown), METAL_VERSION);
  text_free(&shown);
  return status;
}

/* Skip a map with string keys, whose values take at least `least` bytes each. */
static int skip_map(struct reader *reader, size_t least, int (*skip)(struct reader *reader)) {
  size_t count;
  struct span key;
  if (reader_count(reader, 8 + least, UINT64_MAX, &count) != 0) return -1;
  for (size_t i = 0; i < count; i++)
    if (reader_string(reader, &key) != 0 || skip(reader) != 0) return -1;
  return 0;
}

static int skip_text(struct reader *reader) {
  struct span text;
  return reader_string(reader, &text);
}

static int skip_bytes(struct reader *reader) {
  struct span bytes;
  return reader_bytes(reader, &bytes);
}

static int skip_shader(struct reader *reader) {
  uint32_t flag;
  size_t count;
  const uint8_t *words;
  if (reader_u32(reader, &flag) != 0 || reader_count(reader, 4, UINT64_MAX, &count) != 0) return -1;
  return reader_raw(reader, 4 * count, "bytes", &words);
}

static int skip_sized_shader(struct reader *reader) {
  struct reader inner;
  return reader_sized(reader, &inner) == 0 ? skip_shader(&inner) : -1;
}

static int read_sources(struct reader *reader, struct device_module *self) {
  (void)self;
  return skip_map(reader, 8, skip_text);
}

static int read_shaders(struct reader *reader, struct device_module *self) {
  (void)self;
  return skip_map(reader, 12, skip_shader);
}

static int read_codes(struct reader *reader, struct device_module *self) {
  (void)self;
  return skip_map(reader, 8, skip_bytes);
}

static int read_blobs(struct reader *reader, struct device_module *self) {
  (void)self;
  return skip_map(reader, 20, skip_sized_shader);
}

/* ---- Layouts */

enum { MOST_FIELDS = 4, MOST_LAYOUTS = 2 };
typedef int read_field(struct reader *reader, struct device_module *self);

struct layout {
  read_field *fields[MOST_FIELDS + 1]; /* ended by NULL */
};

static const struct layout source = {{read_fmt, read_functions, read_data}};
static const struct layout metal = {{read_version, read_sources, read_functions, read_fmt}};
static const struct layout metal_ffi = {{read_fmt, read_functions, read_codes}};
static const struct layout vulkan = {{read_fmt, read_functions, read_shaders}};
static const struct layout vulkan_ffi = {{read_fmt, read_functions, read_blobs}};
static const struct layout webgpu = {{read_functions, read_sources}};

/* The layouts of TVM built with the backend, by dialect. They are tried first. */
static const struct {
  const char *type_key;
  const struct layout *layouts[2];
} backends[] = {
    {"metal", {[DIALECT_TVM] = &metal, [DIALECT_TVM_FFI] = &metal_ffi}},
    {"vulkan", {[DIALECT_TVM] = &vulkan, [DIALECT_TVM_FFI] = &vulkan_ffi}},
    {"webgpu", {[DIALECT_TVM] = &webgpu, [DIALECT_TVM_FFI] = &webgpu}},
};

static const struct layout *backend_layout(const char *type_key, enum dialect dialect) {
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
    if (strcmp(backends[i].type_key, type_key) == 0) return backends[i].layouts[dialect];
  return NULL;
}

static int read_layout(struct reader *reader, struct device_module *self,
                       const struct layout *layout) {
  for (read_field *const *field = layout->fields; *field != NULL; field++)
    if ((*field)(reader, self) != 0) return -1;
  return 0;
}

void device_payload_clear(struct device_module *self) {
  for (size_t i = 0; i < self->num_rows; i++) free(self->rows[i].tags);
  free(self->rows);
  name_order_free(&self->order);
  self->rows = NULL;
  self->num_rows = 0;
  self->fmt = self->data = (struct span){NULL, 0};
}

/* True if the last error says that the bytes have another format. */
static int is_format_error(void) {
  const char *kind, *message;
  return raised_look(&kind, &message) && strcmp(kind, "BlobFormatError") == 0;
}

int device_payload_read(struct device_module *self, struct reader *reader) {
  const struct layout *first = backend_layout(self->module.type_key, reader->dialect);
  size_t start = reader->offset;
  if (first != NULL) {
    int status = read_layout(reader, self, first);
    if (status == 0 && reader_ends_entry(reader)) return 0;
    if (status != 0 && !is_format_error()) return -1;
    if (status != 0) raised_forget();
    device_payload_clear(self);
    reader->offset = start;
  }
  return read_layout(reader, self, &source);
}
