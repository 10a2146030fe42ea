/* The payload of relax.VMExecutable (runtime/modules/vm.py). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "blob/arrays.h"
#include "types/vm_executable.h"

static const uint64_t MAGIC = 0xD225DE2F4214151E;
static const char VERSION[] = "0.14";

enum { MOST_DIMS = 64, ROW_NBYTES = 4 + 8 + 4 * 8 + 8, SCOPE_NBYTES = 16 };

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for an executable");
}

/* Refuse a text at `at`. Returns -1. */
static int refuse_text(const struct reader *reader, size_t at, const char *what, struct span found,
                       const char *expected) {
  struct text shown = {0};
  text_repr(&shown, found.data, found.size);
  int status = reader_fail(reader, at, "%s %s, expected %s", what, text_of(&shown), expected);
  text_free(&shown);
  return status;
}

static int read_header(struct reader *reader) {
  uint64_t magic;
  struct span version;
  size_t start = reader->offset;
  if (reader_u64(reader, &magic) != 0) return -1;
  if (magic != MAGIC)
    return reader_fail(reader, start, "magic 0x%" PRIx64 ", expected 0x%" PRIx64, magic, MAGIC);
  start = reader->offset;
  if (reader_string(reader, &version) != 0) return -1;
  if (version.size == strlen(VERSION) && memcmp(version.data, VERSION, version.size) == 0) return 0;
  return refuse_text(reader, start, "bytecode version", version, "'0.14'");
}

/* ---- Functions */

static int read_params(struct reader *reader, struct vm_function *function, struct vm_row *row) {
  size_t count;
  if (reader_count(reader, 8, UINT64_MAX, &count) != 0) return -1;
  row->params = heap_new_zeroed(count + 1, sizeof *row->params);
  if (row->params == NULL) return no_memory();
  for (size_t i = 0; i < count; i++)
    if (reader_string(reader, &row->params[i]) != 0) return -1;
  function->num_params = (int64_t)count;
  return 0;
}

static int read_row(struct reader *reader, struct vm_executable *self) {
  struct vm_function *function = &self->code.functions[self->code.num_functions];
  struct vm_row *row = &self->rows[self->code.num_functions];
  int32_t kind;
  row->at = reader->offset;
  if (reader_i32(reader, &kind) != 0 || reader_string(reader, &row->name) != 0) return -1;
  if (row->name.size == 0 || memchr(row->name.data, '\0', row->name.size) != NULL)
    return refuse_text(reader, row->at, "function name", row->name, "a unique one");
  self->code.num_functions++;
  function->kind = kind;
  function->name = span_copy(row->name);
  if (function->name == NULL || reader_i64(reader, &function->start) != 0 ||
      reader_i64(reader, &function->end) != 0 || reader_i64(reader, &function->num_args) != 0 ||
      reader_i64(reader, &function->num_registers) != 0)
    return -1;
  return read_params(reader, function, row);
}

/* A name that occurs twice precedes whatever ended the reading. */
static int check_names(const struct reader *reader, struct vm_executable *self, int status) {
  if (name_order_make(&self->order, self->rows, self->code.num_functions, sizeof *self->rows) != 0)
    return -1;
  size_t repeated = name_order_repeated(&self->order);
  if (repeated == NO_NAME) return status;
  const struct vm_row *row = &self->rows[repeated];
  return refuse_text(reader, row->at, "function name", row->name, "a unique one");
}

static int read_functions(struct reader *reader, struct vm_executable *self) {
  size_t count;
  int status = 0;
  if (reader_count(reader, ROW_NBYTES, UINT64_MAX, &count) != 0) return -1;
  self->code.functions = heap_new_zeroed(count + 1, sizeof *self->code.functions);
  self->rows = heap_new_zeroed(count + 1, sizeof *self->rows);
  if (self->code.functions == NULL || self->rows == NULL) return no_memory();
  for (size_t i = 0; i < count && status == 0; i++) status = read_row(reader, self);
  return check_names(reader, self, status);
}

/* ---- Memory scopes: checked, not used */

struct scope {
  struct span key; /* the bytes of the constant's index */
  int64_t constant;
  size_t at;
};

struct scopes {
  size_t count, at;
  struct scope *items;
};

static int read_scope(struct reader *reader, struct scopes *scopes) {
  struct scope *scope = &scopes->items[scopes->count];
  struct span text;
  scope->at = reader->offset;
  scope->key = (struct span){(const char *)reader->bytes + reader->offset, 8};
  if (reader_i64(reader, &scope->constant) != 0) return -1;
  scopes->count++;
  return reader_string(reader, &text);
}

static int check_scopes(const struct reader *reader, const struct scopes *scopes, int status) {
  struct name_order keys;
  if (name_order_make(&keys, scopes->items, scopes->count, sizeof *scopes->items) != 0) return -1;
  size_t repeated = name_order_repeated(&keys);
  name_order_free(&keys);
  if (repeated == NO_NAME) return status;
  const struct scope *scope = &scopes->items[repeated];
  return reader_fail(reader, scope->at,
                     "a second memory scope of constant %" PRId64 ", expected one",
                     scope->constant);
}

static int read_scopes(struct reader *reader, struct scopes *scopes) {
  size_t count;
  int status = 0;
  scopes->at = reader->offset;
  if (reader_count(reader, SCOPE_NBYTES, UINT64_MAX, &count) != 0) return -1;
  scopes->items = heap_new_zeroed(count + 1, sizeof *scopes->items);
  if (scopes->items == NULL) return no_memory();
  for (size_t i = 0; i < count && status == 0; i++) status = read_scope(reader, scopes);
  return check_scopes(reader, scopes, status);
}

static int match_scopes(const struct reader *reader, const struct scopes *scopes,
                        size_t num_constants) {
  for (size_t i = 0; i < scopes->count; i++) {
    int64_t constant = scopes->items[i].constant;
    if (constant < 0 || (uint64_t)constant >= num_constants)
      return reader_fail(reader, scopes->at,
                         "memory scope of constant %" PRId64 ", expected less than %zu", constant,
                         num_constants);
  }
  return 0;
}

/* ---- Constants */

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

/* The value is None until it is complete. */
static int read_constant(struct reader *reader, dso_any *value) {
  size_t start = reader->offset;
  int32_t type_index;
  dso_any made = {.type_index = DSO_NONE};
  int status = -1;
  if (reader_i32(reader, &type_index) != 0) return -1;
  made.type_index = type_index;
  switch (type_index) {
    case DSO_INT: status = reader_i64(reader, &made.v_int64); break;
    case DSO_FLOAT: status = read_float(reader, &made); break;
    case DSO_DATA_TYPE: status = reader_dtype(reader, &made.v_dtype); break;
    case DSO_STR: status = read_text(reader, &made); break;
    case DSO_SHAPE: status = read_shape(reader, &made); break;
    case DSO_TENSOR: status = read_tensor(reader, &made); break;
    default:
      return reader_fail(reader, start,
                         "constant of type index %d, expected one of [1, 3, 5, 65, 69, 70]",
                         (int)type_index);
  }
  if (status == 0) *value = made;
  return status;
}

static int read_constants(struct reader *reader, struct vm_executable *self) {
  size_t count;
  if (reader_count(reader, 8, UINT64_MAX, &count) != 0) return -1;
  self->constants = heap_new_zeroed(count + 1, sizeof *self->constants);
  self->weights = heap_new_zeroed(count + 1, sizeof *self->weights);
  if (self->constants == NULL || self->weights == NULL) return no_memory();
  for (; self->code.num_constants < count; self->code.num_constants++)
    if (read_constant(reader, &self->constants[self->code.num_constants]) != 0) return -1;
  return 0;
}

/* ---- Instructions */

static int read_words(struct reader *reader, const unsigned char **words, size_t *count,
                      size_t *at) {
  if (reader_count(reader, 8, UINT64_MAX, count) != 0) return -1;
  *at = reader->offset;
  return reader_raw(reader, 8 * *count, "code", words);
}

static int read_code(struct reader *reader, struct vm_executable *self) {
  struct vm_code *code = &self->code;
  struct vm_fault fault;
  size_t offsets, words;
  if (read_words(reader, &code->offsets, &code->num_instructions, &offsets) != 0 ||
      read_words(reader, &code->words, &code->num_words, &words) != 0)
    return -1;
  int status = vm_verify(code, &fault);
  if (status == 0) return 0;
  if (status == VM_NO_MEMORY) return no_memory();
  size_t at = fault.table == VM_FUNCTIONS
                  ? self->rows[fault.index].at
                  : (fault.table == VM_OFFSETS ? offsets : words) + 8 * fault.index;
  return reader_fail(reader, at, "%s", fault.text);
}

int vm_executable_read(struct vm_executable *self, struct reader *reader) {
  struct scopes scopes = {0};
  int status = -1;
  if (read_header(reader) == 0 && read_functions(reader, self) == 0 &&
      read_scopes(reader, &scopes) == 0 && read_constants(reader, self) == 0 &&
      match_scopes(reader, &scopes, self->code.num_constants) == 0)
    status = read_code(reader, self);
  free(scopes.items);
  return status;
}
