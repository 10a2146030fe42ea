/* Typed sets: tables without values. */
#include "table.h"

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

struct set_methods {
  int (*is_equal)(const char *key, const char *other);
  void (*retain_key)(const void *key);
  void (*release_key)(const void *key);
};

int numba_set_new(struct table **out, int64_t key_size, int64_t size);
int numba_set_new_sized(struct table **out, int64_t key_size, int64_t num_keys);
void numba_set_set_method_table(struct table *self, const struct set_methods *methods);
void numba_set_free(struct table *self);
int64_t numba_set_length(const struct table *self);
int numba_set_add(struct table *self, const char *key, int64_t hash);
int64_t numba_set_contains(const struct table *self, const char *key, int64_t hash);
int numba_set_discard(struct table *self, const char *key, int64_t hash);
size_t numba_set_iter_sizeof(void);
void numba_set_iter(struct table_iterator *iterator, const struct table *self);
int numba_set_iter_next(struct table_iterator *iterator, const char **key);
void numba_set_dump(const struct table *self);

int numba_set_new(struct table **out, int64_t key_size, int64_t size) {
  return table_new(out, size, key_size, 0);
}

int numba_set_new_sized(struct table **out, int64_t key_size, int64_t num_keys) {
  return table_new_for(out, num_keys, key_size, 0);
}

void numba_set_set_method_table(struct table *self, const struct set_methods *methods) {
  self->methods = (struct table_methods){.is_equal = methods->is_equal,
                                         .retain_key = methods->retain_key,
                                         .release_key = methods->release_key};
}

void numba_set_free(struct table *self) { table_free(self); }

int64_t numba_set_length(const struct table *self) { return self->used; }

int numba_set_add(struct table *self, const char *key, int64_t hash) {
  int64_t index = table_find(self, key, hash);
  if (index == TABLE_ERROR) return TABLE_COMPARE_FAILED;
  return index == TABLE_ABSENT ? table_add(self, key, hash, NULL) : TABLE_FOUND;
}

/* A comparison that fails counts as equal, as in Numba. */
int64_t numba_set_contains(const struct table *self, const char *key, int64_t hash) {
  return table_find(self, key, hash) != TABLE_ABSENT;
}

int numba_set_discard(struct table *self, const char *key, int64_t hash) {
  int64_t index = table_find(self, key, hash);
  if (index >= 0) table_delete(self, index, 0);
  return TABLE_OK;
}

size_t numba_set_iter_sizeof(void) { return sizeof(struct table_iterator); }

void numba_set_iter(struct table_iterator *iterator, const struct table *self) {
  table_iterate(iterator, self);
}

int numba_set_iter_next(struct table_iterator *iterator, const char **key) {
  int status;
  char *entry = table_next(iterator, &status);
  if (entry != NULL) *key = table_key(entry);
  return status;
}

void numba_set_dump(const struct table *self) { table_dump(self, "set"); }
