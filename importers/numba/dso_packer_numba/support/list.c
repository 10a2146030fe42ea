/* Typed lists: items of one size in one block, which grows as Python's lists do. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

enum { OK = 0, INDEX = -1, NO_MEMORY = -2, MUTATED = -3, EXHAUSTED = -4, IMMUTABLE = -5 };

struct list_methods { /* NULL for items without references */
  void (*retain)(const void *item);
  void (*release)(const void *item);
};

/* Compiled code writes `size` (numba_list_size_address), and the items (numba_list_base_ptr). */
struct list {
  int64_t size;
  int64_t item_size;
  int64_t allocated;
  int is_mutable;
  struct list_methods methods;
  char *items;
};

/* Compiled code reserves 24 bytes for it. */
struct list_iterator {
  const struct list *list;
  int64_t size;
  int64_t next;
};
_Static_assert(sizeof(struct list_iterator) == 24, "Numba's numba_list_iter_sizeof");

int numba_list_new(struct list **out, int64_t item_size, int64_t allocated);
void numba_list_set_method_table(struct list *self, const struct list_methods *methods);
void numba_list_free(struct list *self);
char *numba_list_base_ptr(struct list *self);
int64_t numba_list_size_address(struct list *self);
int64_t numba_list_length(const struct list *self);
int64_t numba_list_allocated(const struct list *self);
int numba_list_is_mutable(const struct list *self);
void numba_list_set_is_mutable(struct list *self, int is_mutable);
int numba_list_setitem(struct list *self, int64_t index, const char *item);
int numba_list_getitem(const struct list *self, int64_t index, char *out);
int numba_list_append(struct list *self, const char *item);
int numba_list_delitem(struct list *self, int64_t index);
int numba_list_delete_slice(struct list *self, int64_t start, int64_t stop, int64_t step);
size_t numba_list_iter_sizeof(void);
void numba_list_iter(struct list_iterator *iterator, const struct list *list);
int numba_list_iter_next(struct list_iterator *iterator, const char **item);

/* ---- Items */

static char *item_at(const struct list *self, int64_t index) {
  return self->items + index * self->item_size;
}

static void retain(const struct list *self, const char *item) {
  if (self->methods.retain != NULL) self->methods.retain(item);
}

static void release(const struct list *self, int64_t first, int64_t stop, int64_t step) {
  if (self->methods.release == NULL) return;
  for (int64_t i = first; i < stop; i += step) self->methods.release(item_at(self, i));
}

static void move(struct list *self, int64_t to, int64_t from, int64_t count) {
  if (count > 0 && to != from)
    memmove(item_at(self, to), item_at(self, from), (size_t)(count * self->item_size));
}

/* ---- Room: an eighth more than the items, and no less than half of it used */

static int allocate(struct list *self, int64_t allocated) {
  size_t nbytes;
  if (__builtin_mul_overflow((size_t)allocated, (size_t)self->item_size, &nbytes) ||
      nbytes > PTRDIFF_MAX)
    return NO_MEMORY;
  if (nbytes == 0) {
    free(self->items);
    self->items = NULL;
  } else {
    char *items = realloc(self->items, nbytes);
    if (items == NULL) return NO_MEMORY;
    self->items = items;
  }
  self->allocated = allocated;
  return OK;
}

static int resize(struct list *self, int64_t size) {
  if (size > self->allocated || size < self->allocated / 2) {
    int64_t more = size / 8 + (size < 9 ? 3 : 6);
    if (allocate(self, size == 0 ? 0 : size + more) != OK) return NO_MEMORY;
  }
  self->size = size;
  return OK;
}

/* ---- Lists */

int numba_list_new(struct list **out, int64_t item_size, int64_t allocated) {
  struct list *self = calloc(1, sizeof *self);
  if (self == NULL) return NO_MEMORY;
  self->item_size = item_size;
  self->is_mutable = 1;
  if (allocate(self, allocated) != OK) {
    free(self);
    return NO_MEMORY;
  }
  *out = self;
  return OK;
}

void numba_list_set_method_table(struct list *self, const struct list_methods *methods) {
  self->methods = *methods;
}

void numba_list_free(struct list *self) {
  release(self, 0, self->size, 1);
  free(self->items);
  free(self);
}

char *numba_list_base_ptr(struct list *self) { return self->items; }
int64_t numba_list_size_address(struct list *self) { return (int64_t)(intptr_t)&self->size; }
int64_t numba_list_length(const struct list *self) { return self->size; }
int64_t numba_list_allocated(const struct list *self) { return self->allocated; }
int numba_list_is_mutable(const struct list *self) { return self->is_mutable; }
void numba_list_set_is_mutable(struct list *self, int is_mutable) { self->is_mutable = is_mutable; }

static int is_inside(const struct list *self, int64_t index) {
  return (uint64_t)index < (uint64_t)self->size;
}

int numba_list_getitem(const struct list *self, int64_t index, char *out) {
  if (!is_inside(self, index)) return INDEX;
  memcpy(out, item_at(self, index), (size_t)self->item_size);
  return OK;
}

int numba_list_setitem(struct list *self, int64_t index, const char *item) {
  if (!self->is_mutable) return IMMUTABLE;
  if (!is_inside(self, index)) return INDEX;
  retain(self, item); /* first, since both may be the same */
  release(self, index, index + 1, 1);
  memcpy(item_at(self, index), item, (size_t)self->item_size);
  return OK;
}

int numba_list_append(struct list *self, const char *item) {
  if (!self->is_mutable) return IMMUTABLE;
  if (resize(self, self->size + 1) != OK) return NO_MEMORY;
  memcpy(item_at(self, self->size - 1), item, (size_t)self->item_size);
  retain(self, item);
  return OK;
}

int numba_list_delitem(struct list *self, int64_t index) {
  if (!self->is_mutable) return IMMUTABLE;
  if (!is_inside(self, index)) return INDEX;
  release(self, index, index + 1, 1);
  move(self, index, index + 1, self->size - index - 1);
  return resize(self, self->size - 1);
}

/* The indices are inside the list, except that `stop` is -1 for a slice to the first item with a
 * negative step. */
int numba_list_delete_slice(struct list *self, int64_t start, int64_t stop, int64_t step) {
  if (!self->is_mutable) return IMMUTABLE;
  int64_t distance = step > 0 ? stop - start : start - stop, every = step > 0 ? step : -step;
  if (distance <= 0) return OK;
  int64_t count = (distance - 1) / every + 1;
  int64_t first = step > 0 ? start : start - (count - 1) * every;
  int64_t last = first + (count - 1) * every;
  release(self, first, last + 1, every);
  for (int64_t i = 0; i < count; i++) {
    int64_t from = first + i * every + 1;
    move(self, from - 1 - i, from, i + 1 < count ? every - 1 : self->size - from);
  }
  return resize(self, self->size - count);
}

/* ---- Iterators */

size_t numba_list_iter_sizeof(void) { return sizeof(struct list_iterator); }

void numba_list_iter(struct list_iterator *iterator, const struct list *list) {
  *iterator = (struct list_iterator){.list = list, .size = list->size};
}

int numba_list_iter_next(struct list_iterator *iterator, const char **item) {
  if (iterator->list->size != iterator->size) return MUTATED;
  if (iterator->next >= iterator->size) return EXHAUSTED;
  *item = item_at(iterator->list, iterator->next++);
  return OK;
}
