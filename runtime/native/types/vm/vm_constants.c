/* The constants of an executable (runtime/modules/vm_payload.py). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/dtype.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "blob/arrays.h"
#include "types/vm/vm_executable.h"

enum { MOST_DIMS = 64, NUM_TAGS = 6, NUM_VERSIONS = 3 };

/* The tags of constants: current tags, which are TVM FFI's type indices, tags of TVM 0.21, and
 * older tags. */
struct tags {
  struct {
    int32_t tag, type_index;
  } rows[NUM_TAGS];
  const char *shown;
};

static const struct tags versions[NUM_VERSIONS] = {
    {{{1, DSO_INT},
      {3, DSO_FLOAT},
      {5, DSO_DATA_TYPE},
      {65, DSO_STR},
      {69, DSO_SHAPE},
      {70, DSO_TENSOR}},
     "[1, 3, 5, 65, 69, 70]"},
    {{{1, DSO_INT},
      {3, DSO_FLOAT},
      {5, DSO_DATA_TYPE},
      {65, DSO_STR},
      {71, DSO_SHAPE},
      {72, DSO_TENSOR}},
     "[1, 3, 5, 65, 71, 72]"},
    {{{0, DSO_TENSOR},
      {1, DSO_DATA_TYPE},
      {2, DSO_SHAPE},
      {3, DSO_STR},
      {4, DSO_INT},
      {5, DSO_FLOAT}},
     "[0, 1, 2, 3, 4, 5]"},
};

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for an executable");
}

static int refuse_shape(const struct reader *reader, size_t at, const uint8_t *dims, size_t ndim) {
  struct text shown = {0};
  text_add(&shown, "(", 1);
  for (size_t i = 0; i < ndim && i < 8; i++)
    text_format(&shown, "%s%" PRId64, i > 0 ? ", " : "", vm_word(dims, i));
  text_add(&shown, ",)", ndim == 1 ? 2 : 0);
  text_add(&shown, ")", ndim == 1 ? 0 : 1);
  int status = reader_fail(reader, at, "shape %s, expected at most %d extents of at least 0",
                           text_of(&shown), MOST_DIMS);
  text_free(&shown);
  return status;
}

static int read_shape(struct reader *reader, dso_any *value) {
  size_t count, start = reader->offset;
  const uint8_t *words;
  int64_t dims[MOST_DIMS];
  if (reader_count(reader, 8, UINT64_MAX, &count) != 0 ||
      reader_raw(reader, 8 * count, "bytes", &words) != 0)
    return -1;
  if (count > MOST_DIMS) return refuse_shape(reader, start, words, count);
  for (size_t i = 0; i < count; i++)
    if ((dims[i] = vm_word(words, i)) < 0) return refuse_shape(reader, start, words, count);
  dso_object *shape = shape_object_new(count, dims);
  if (shape == NULL) return -1;
  *value = any_of_object(shape);
  return 0;
}

static int read_float(struct reader *reader, dso_any *value) {
  const uint8_t *bytes;
  if (reader_raw(reader, 8, "a float", &bytes) != 0) return -1;
  memcpy(&value->v_float64, bytes, 8);
  return 0;
}

static int read_text(struct reader *reader, dso_any *value) {
  struct span text;
  if (reader_string(reader, &text) != 0) return -1;
  return object_make_string(value, 1, text.data, text.size) == 0 ? 0 : no_memory();
}

static int read_tensor(struct reader *reader, dso_any *value) {
  dso_tensor_object *tensor = reader_ndarray(reader);
  if (tensor == NULL) return -1;
  *value = any_of_object(tensor);
  return 0;
}

/* ---- Old models write bool as uint1, which has a byte for each element too */

static void make_bool(DLDataType *dtype) {
  if (dtype->code == DTYPE_UINT && dtype->bits == 1 && dtype->lanes == 1)
    *dtype = (DLDataType){DTYPE_BOOL, 8, 1};
}

static void read_bool(dso_any *value) {
  if (value->type_index == DSO_DATA_TYPE) make_bool(&value->v_dtype);
  if (value->type_index == DSO_TENSOR)
    make_bool(&((dso_tensor_object *)value->v_ptr)->tensor.dtype);
}

/* ---- All constants */

/* The type index of a tag, or -1. */
static int32_t type_of(const struct tags *tags, int32_t tag) {
  for (int i = 0; i < NUM_TAGS; i++)
    if (tags->rows[i].tag == tag) return tags->rows[i].type_index;
  return -1;
}

/* *value stays None until the constant is complete. */
static int read_constant(struct reader *reader, const struct tags *tags, dso_any *value) {
  size_t start = reader->offset;
  int32_t tag;
  dso_any made = {.type_index = DSO_NONE};
  int status = -1;
  if (reader_i32(reader, &tag) != 0) return -1;
  made.type_index = type_of(tags, tag);
  switch (made.type_index) {
    case DSO_INT: status = reader_i64(reader, &made.v_int64); break;
    case DSO_FLOAT: status = read_float(reader, &made); break;
    case DSO_DATA_TYPE: status = reader_dtype(reader, &made.v_dtype); break;
    case DSO_STR: status = read_text(reader, &made); break;
    case DSO_SHAPE: status = read_shape(reader, &made); break;
    case DSO_TENSOR: status = read_tensor(reader, &made); break;
    default:
      return reader_fail(reader, start, "constant of type index %d, expected one of %s", (int)tag,
                         tags->shown);
  }
  if (status == 0) *value = made;
  return status;
}

static void clear(struct vm_executable *self) {
  while (self->code.num_constants > 0) any_release(&self->constants[--self->code.num_constants]);
  free(self->constants);
  free(self->weights);
  self->constants = NULL;
  self->weights = NULL;
}

static int read_all(struct vm_executable *self, struct reader *reader, const struct tags *tags,
                    int is_old) {
  size_t count;
  if (reader_count(reader, 8, UINT64_MAX, &count) != 0) return -1;
  self->constants = heap_new_zeroed(count + 1, sizeof *self->constants);
  self->weights = heap_new_zeroed(count + 1, sizeof *self->weights);
  if (self->constants == NULL || self->weights == NULL) return no_memory();
  for (; self->code.num_constants < count; self->code.num_constants++) {
    dso_any *value = &self->constants[self->code.num_constants];
    if (read_constant(reader, tags, value) != 0) return -1;
    if (is_old) read_bool(value);
  }
  return 0;
}

/* Return 1 if all constants have these tags. */
static int fits(struct vm_executable *self, const struct reader *reader, const struct tags *tags) {
  struct reader probe = *reader;
  int status = read_all(self, &probe, tags, 1);
  clear(self);
  return status == 0;
}

int vm_constants_read(struct vm_executable *self, struct reader *reader, int is_newest) {
  int version = 0;
  if (!is_newest && strcmp(self->module.type_key, "relax.Executable") == 0)
    version = NUM_VERSIONS - 1;
  else if (!is_newest) {
    while (version < NUM_VERSIONS && !fits(self, reader, &versions[version])) version++;
    raised_forget();
    version %= NUM_VERSIONS; /* none fits: the error is that of the first one */
  }
  return read_all(self, reader, &versions[version], !is_newest);
}
