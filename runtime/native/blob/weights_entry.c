/* The check of one tensor in the header of a safetensors file. */
#include "blob/weights_entry.h"

#include <inttypes.h>
#include <string.h>

#include "abi/dlpack.h"
#include "abi/strides.h"

enum { MAX_NDIM = 64 };

/* The format's data types as DLDataType. Both formats pack elements of less than a byte. */
const struct weights_dtype weights_dtypes[NUM_WEIGHTS_DTYPES] = {
    {"BOOL", {6, 8, 1}},         {"F4", {17, 4, 1}},          {"F6_E2M3", {15, 6, 1}},
    {"F6_E3M2", {16, 6, 1}},     {"U8", {1, 8, 1}},           {"I8", {0, 8, 1}},
    {"F8_E5M2", {12, 8, 1}},     {"F8_E4M3", {10, 8, 1}},     {"F8_E8M0", {14, 8, 1}},
    {"F8_E4M3FNUZ", {11, 8, 1}}, {"F8_E5M2FNUZ", {13, 8, 1}}, {"I16", {0, 16, 1}},
    {"U16", {1, 16, 1}},         {"F16", {2, 16, 1}},         {"BF16", {4, 16, 1}},
    {"I32", {0, 32, 1}},         {"U32", {1, 32, 1}},         {"F32", {2, 32, 1}},
    {"C64", {5, 64, 1}},         {"F64", {2, 64, 1}},         {"I64", {0, 64, 1}},
    {"U64", {1, 64, 1}},
};

void weights_entry_wrong(struct text *error, struct span name, const char *key) {
  text_format(error, "tensor ");
  text_shown_json(error, name.data, name.size);
  text_format(error, ": %s, expected ", key);
}

/* An entry that is being read. */
struct entry {
  const struct json *name, *info;
  struct text *error;
};

static void begin_error(const struct entry *self, const char *key) {
  weights_entry_wrong(self->error, (struct span){self->name->text, self->name->size}, key);
}

static int end_error(const struct entry *self, const struct json *found) {
  text_format(self->error, ", found ");
  json_shown(self->error, found);
  return -1;
}

static int wrong(const struct entry *self, const char *key, const char *expected) {
  begin_error(self, key);
  text_format(self->error, "%s", expected);
  return end_error(self, json_member(self->info, key));
}

/* ---- The parts of an entry */

static int read_dtype(const struct entry *self, DLDataType *dtype) {
  const struct json *found = json_member(self->info, "dtype");
  for (size_t i = 0; i < NUM_WEIGHTS_DTYPES; i++)
    if (json_is_text(found, weights_dtypes[i].name)) {
      *dtype = weights_dtypes[i].dtype;
      return 0;
    }
  begin_error(self, "dtype");
  for (size_t i = 0; i < NUM_WEIGHTS_DTYPES; i++)
    text_format(self->error, "%s%s", i == 0 ? "one of " : ", ", weights_dtypes[i].name);
  return end_error(self, found);
}

static int is_size(const struct json *value) {
  if (value->type == JSON_LARGE) return *value->text != '-';
  return value->type == JSON_INTEGER && value->integer >= 0;
}

static int are_sizes(const struct json *list, size_t least, size_t most) {
  if (list == NULL || list->type != JSON_LIST || list->size < least || list->size > most) return 0;
  for (size_t i = 0; i < list->size; i++)
    if (!is_size(&list->items[i])) return 0;
  return 1;
}

size_t weights_entry_ndim(const struct json *entry) {
  const struct json *shape = entry->type == JSON_OBJECT ? json_member(entry, "shape") : NULL;
  return shape != NULL && are_sizes(shape, 0, MAX_NDIM) ? shape->size : 0;
}

static int read_shape(const struct entry *self, DLTensor *tensor) {
  const struct json *shape = json_member(self->info, "shape");
  if (!are_sizes(shape, 0, MAX_NDIM)) return wrong(self, "shape", "at most 64 sizes of at least 0");
  tensor->ndim = (int32_t)shape->size;
  for (size_t i = 0; i < shape->size; i++)
    tensor->shape[i] = shape->items[i].type == JSON_INTEGER ? shape->items[i].integer : INT64_MAX;
  return 0;
}

/* The size of a tensor in bits; the other extents are checked even if one extent is 0. */
static int read_nbits(const struct entry *self, const DLTensor *tensor, uint64_t *nbits) {
  int is_empty = 0;
  *nbits = tensor->dtype.bits;
  for (int32_t i = 0; i < tensor->ndim; i++) {
    uint64_t extent = (uint64_t)tensor->shape[i];
    is_empty |= extent == 0;
    if (__builtin_mul_overflow(*nbits, extent == 0 ? 1 : extent, nbits) || *nbits > INT64_MAX)
      return wrong(self, "shape", "a size that can be addressed");
  }
  if (is_empty) *nbits = 0;
  return 0;
}

static int wrong_size(const struct entry *self, const DLTensor *tensor, uint64_t nbytes) {
  begin_error(self, "data_offsets");
  text_format(self->error, "%" PRIu64 " bytes of %s [", nbytes,
              json_member(self->info, "dtype")->text);
  for (int32_t i = 0; i < tensor->ndim; i++)
    text_format(self->error, i == 0 ? "%" PRId64 : ", %" PRId64, tensor->shape[i]);
  text_format(self->error, "]");
  return end_error(self, json_member(self->info, "data_offsets"));
}

static int read_offsets(const struct entry *self, struct weight *weight) {
  const struct json *offsets = json_member(self->info, "data_offsets");
  if (!are_sizes(offsets, 2, 2) || offsets->items[0].type == JSON_LARGE ||
      offsets->items[1].type == JSON_LARGE)
    return wrong(self, "data_offsets", "[begin, end]");
  weight->begin = (uint64_t)offsets->items[0].integer;
  weight->end = (uint64_t)offsets->items[1].integer;
  return 0;
}

static int check_size(const struct entry *self, const struct weight *weight, uint64_t nbits) {
  if (nbits % 8 != 0) return wrong(self, "data_offsets", "whole bytes");
  if (weight->begin + nbits / 8 == weight->end) return 0;
  return wrong_size(self, &weight->tensor, nbits / 8);
}

int weights_entry_read(const struct json *key, int64_t *dims, struct weight *weight,
                       struct text *error) {
  struct entry self = {.name = key, .info = key + 1, .error = error};
  uint64_t nbits;
  if (self.info->type != JSON_OBJECT) {
    begin_error(&self, "entry");
    text_format(error, "an object");
    return end_error(&self, self.info);
  }
  DLTensor *tensor = &weight->tensor;
  *tensor = (DLTensor){.device = {DLPACK_CPU, 0}, .shape = dims};
  if (read_dtype(&self, &tensor->dtype) != 0 || read_shape(&self, tensor) != 0 ||
      read_offsets(&self, weight) != 0 || read_nbits(&self, tensor, &nbits) != 0 ||
      check_size(&self, weight, nbits) != 0)
    return -1;
  tensor->strides = dims + tensor->ndim;
  strides_set(tensor);
  return 0;
}
