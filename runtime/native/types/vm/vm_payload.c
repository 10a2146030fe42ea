/* The payload of relax.VMExecutable (runtime/modules/vm.py). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "blob/arrays.h"
#include "types/vm/vm_executable.h"

static const uint64_t MAGIC = 0xD225DE2F4214151E, MAGIC_V1 = 0xD225DE2F4214151D;
static const char VERSION[] = "0.14";

enum { ROW_NBYTES = 4 + 8 + 4 * 8 + 8, SCOPE_NBYTES = 16 };

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

static int is_magic(uint64_t number) { return number == MAGIC || number == MAGIC_V1; }

static int read_header(struct reader *reader, uint64_t *magic) {
  struct span version;
  size_t start = reader->offset;
  if (reader_u64(reader, magic) != 0) return -1;
  if (!is_magic(*magic))
    return reader_fail(reader, start, "magic 0x%" PRIx64 ", expected 0x%" PRIx64 " or 0x%" PRIx64,
                       *magic, MAGIC, MAGIC_V1);
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

static int read_payload(struct vm_executable *self, struct reader *reader) {
  struct scopes scopes = {0};
  uint64_t magic;
  int status = -1;
  if (read_header(reader, &magic) == 0 && read_functions(reader, self) == 0 &&
      (magic != MAGIC || read_scopes(reader, &scopes) == 0) &&
      vm_constants_read(self, reader, magic == MAGIC) == 0 &&
      match_scopes(reader, &scopes, self->code.num_constants) == 0)
    status = read_code(reader, self);
  free(scopes.items);
  return status;
}

/* Return 1 if a length is before the magic: payloads had none around them. */
static int is_framed(const struct reader *reader) {
  struct reader probe = *reader;
  uint64_t first, second;
  if (reader->dialect != DIALECT_TVM || reader_remaining(reader) < 16) return 0;
  if (reader_u64(&probe, &first) != 0 || reader_u64(&probe, &second) != 0) return 0;
  return !is_magic(first) && is_magic(second);
}

int vm_executable_read(struct vm_executable *self, struct reader *reader) {
  struct reader inner;
  if (!is_framed(reader)) return read_payload(self, reader);
  if (reader_sized(reader, &inner) != 0 || read_payload(self, &inner) != 0) return -1;
  size_t left = reader_remaining(&inner);
  if (left == 0) return 0;
  return reader_fail(&inner, inner.offset, "%zu bytes after the code, expected none", left);
}
