/* safetensors: a file of weights, unchanged (runtime/modules/safetensors.py). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "blob/weights.h"
#include "types/families.h"

enum { MAX_PADDING = 4095 };

struct safetensors {
  dso_module module;
  struct reader reader; /* for messages; path and where are copies */
  char *path, *where;
  struct weights_file file;
  struct weights *weights; /* NULL until the first use */
};

/* Parse the header at the first use. Threads may do so at once; one result stays. */
static const struct weights *weights_of(struct safetensors *self) {
  struct weights *weights = __atomic_load_n(&self->weights, __ATOMIC_ACQUIRE), *other = NULL;
  if (weights != NULL) return weights;
  weights = weights_parse(&self->reader, &self->file);
  if (weights == NULL || __atomic_compare_exchange_n(&self->weights, &other, weights, 0,
                                                     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return weights;
  free(weights);
  return other;
}

static int find_weight(dso_module *self, const char *name, DLTensor *tensor) {
  const struct weights *weights = weights_of((struct safetensors *)self);
  if (weights == NULL) return -1;
  const struct weight *found = weights_find(weights, name);
  if (found != NULL) *tensor = found->tensor;
  return found != NULL;
}

/* A name that contains NUL cannot be written in C, so it is left out. */
static int visit_weights(dso_module *self, dso_visit_weight visit, void *context) {
  const struct weights *weights = weights_of((struct safetensors *)self);
  int status = weights == NULL ? -1 : 0;
  for (size_t i = 0; status == 0 && i < weights->count; i++) {
    const struct weight *weight = &weights->items[i];
    if (strlen(weight->name.data) == weight->name.size)
      status = visit(context, weight->name.data, &weight->tensor);
  }
  return status;
}

static void end(dso_module *module) {
  struct safetensors *self = (struct safetensors *)module;
  free(self->weights);
  free(self->where);
  free(self->path);
}

static const struct module_type type = {
    .weight = find_weight, .visit_weights = visit_weights, .end = end};

static int skip_padding(struct reader *reader) {
  size_t start = reader->offset;
  uint64_t npad;
  const uint8_t *padding;
  if (reader_u64(reader, &npad) != 0) return -1;
  if (npad > MAX_PADDING)
    return reader_fail(reader, start, "a padding of %" PRIu64 " bytes, expected less than %d", npad,
                       MAX_PADDING + 1);
  start = reader->offset;
  if (reader_raw(reader, (size_t)npad, "a padding", &padding) != 0) return -1;
  for (size_t i = 0; i < npad; i++)
    if (padding[i] != 0)
      return reader_fail(reader, start, "a padding that is not zero, expected zeros");
  return 0;
}

static int copy_names(struct safetensors *self, const struct reader *reader) {
  self->reader = *reader;
  self->reader.path = self->path = reader->path != NULL ? heap_copy_text(reader->path) : NULL;
  self->reader.where = self->where = heap_copy_text(reader->where);
  if (self->where != NULL && (self->path != NULL || reader->path == NULL)) return 0;
  return raised_format("OutOfMemoryError", "no memory for a module");
}

int load_safetensors(struct reader *reader, struct span type_key, dso_module **module) {
  struct weights_file file;
  if (skip_padding(reader) != 0 || weights_file_read(reader, &file) != 0) return -1;
  struct safetensors *self = module_new(&type, type_key, sizeof *self, reader->owner);
  if (self == NULL) return -1;
  self->file = file;
  return module_give(&self->module, copy_names(self, reader), module);
}
