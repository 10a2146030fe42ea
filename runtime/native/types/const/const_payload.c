/* The payload of const_loader (runtime/modules/const_loader.py). */
#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "types/const/const_loader.h"

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for a const_loader");
}

/* ['a', 'b'] */
static void add_list(struct text *text, const struct span *names, size_t count, size_t stride) {
  text_add(text, "[", 1);
  for (size_t i = 0; i < count; i++) {
    const struct span *name = (const void *)((const char *)names + i * stride);
    text_add(text, ", ", i > 0 ? 2 : 0);
    text_repr(text, name->data, name->size);
  }
  text_add(text, "]", 1);
}

/* ---- Names */

static int order_arrays(struct const_loader *self) {
  self->used = heap_new_zeroed(self->arrays.count + 1, sizeof *self->used);
  if (self->used == NULL) return no_memory();
  return name_order_make(&self->order, self->arrays.items, self->arrays.count,
                         sizeof *self->arrays.items);
}

size_t const_loader_place(const struct const_loader *self, const char *name, size_t nbytes) {
  return name_order_find(&self->order, name, nbytes);
}

dso_tensor_object *const_loader_use(struct const_loader *self, size_t place) {
  return used_tensor_get(&self->used[place], self->arrays.items[place].tensor);
}

static int check_symbols(const struct const_loader *self, const struct reader *reader, size_t at) {
  struct text text = {0};
  if (name_order_repeated(&self->symbol_order) == NO_NAME) return 0;
  add_list(&text, &self->symbols->name, self->num_symbols, sizeof *self->symbols);
  int status = reader_fail(reader, at, "symbols %s, expected distinct ones", text_of(&text));
  text_free(&text);
  return status;
}

static int read_symbols(struct const_loader *self, struct reader *reader) {
  size_t count, start = reader->offset;
  if (reader_count(reader, 8, UINT64_MAX, &count) != 0) return -1;
  self->symbols = heap_new_zeroed(count + 1, sizeof *self->symbols);
  if (self->symbols == NULL) return no_memory();
  for (size_t i = 0; i < count; i++)
    if (reader_string(reader, &self->symbols[i].name) != 0) return -1;
  self->num_symbols = count;
  if (name_order_make(&self->symbol_order, self->symbols, count, sizeof *self->symbols) != 0)
    return -1;
  return check_symbols(self, reader, start);
}

/* ---- The constants of each symbol */

static int read_list(struct reader *reader, size_t *count, struct span **names) {
  if (reader_count(reader, 8, UINT64_MAX, count) != 0) return -1;
  *names = heap_new_zeroed(*count + 1, sizeof **names);
  if (*names == NULL) return no_memory();
  for (size_t i = 0; i < *count; i++)
    if (reader_string(reader, &(*names)[i]) != 0) return -1;
  return 0;
}

/* Lists beyond the last symbol are read and refused. */
static int read_lists(struct const_loader *self, struct reader *reader) {
  size_t count, start = reader->offset;
  if (reader_count(reader, 8, UINT64_MAX, &count) != 0) return -1;
  for (size_t i = 0; i < count; i++) {
    struct const_symbol unused = {.num_constants = 0};
    struct const_symbol *symbol = i < self->num_symbols ? &self->symbols[i] : &unused;
    int status = read_list(reader, &symbol->num_constants, &symbol->constants);
    free(unused.constants);
    if (status != 0) return -1;
  }
  if (count == self->num_symbols) return 0;
  return reader_fail(reader, start, "constants for %zu symbols, expected %zu", count,
                     self->num_symbols);
}

static int refuse_unknown(const struct const_symbol *symbol, const struct span *missing,
                          size_t count, const struct reader *reader, size_t at) {
  struct text name = {0}, list = {0};
  text_repr(&name, symbol->name.data, symbol->name.size);
  add_list(&list, missing, count, sizeof *missing);
  int status = reader_fail(reader, at,
                           "const_loader: %s needs unknown constants %s, expected only known ones",
                           text_of(&name), text_of(&list));
  text_free(&name);
  text_free(&list);
  return status;
}

static int check_symbol(const struct const_loader *self, const struct const_symbol *symbol,
                        const struct reader *reader, size_t at) {
  size_t num_missing = 0;
  struct span *missing = heap_new_zeroed(symbol->num_constants + 1, sizeof *missing);
  if (missing == NULL) return no_memory();
  for (size_t i = 0; i < symbol->num_constants; i++)
    if (const_loader_place(self, symbol->constants[i].data, symbol->constants[i].size) == NO_NAME)
      missing[num_missing++] = symbol->constants[i];
  int status = num_missing > 0 ? refuse_unknown(symbol, missing, num_missing, reader, at) : 0;
  free(missing);
  return status;
}

int const_payload_read(struct const_loader *self, struct reader *reader) {
  self->dialect = reader->dialect;
  if (named_arrays_read(reader, &self->arrays) != 0 || order_arrays(self) != 0 ||
      read_symbols(self, reader) != 0)
    return -1;
  size_t start = reader->offset;
  if (read_lists(self, reader) != 0) return -1;
  for (size_t i = 0; i < self->num_symbols; i++)
    if (check_symbol(self, &self->symbols[i], reader, start) != 0) return -1;
  return 0;
}

void const_payload_clear(struct const_loader *self) {
  for (size_t i = 0; i < self->num_symbols; i++) free(self->symbols[i].constants);
  free(self->symbols);
  name_order_free(&self->symbol_order);
  for (size_t i = 0; self->used != NULL && i < self->arrays.count; i++)
    used_tensor_clear(&self->used[i]);
  free(self->used);
  name_order_free(&self->order);
  named_arrays_clear(&self->arrays);
}
