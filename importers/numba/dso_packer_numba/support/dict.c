/* Typed dictionaries. */
#include "table.h"

#include <string.h>

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

int numba_dict_new_sized(struct table **out, int64_t num_keys, int64_t key_size, int64_t val_size);
void numba_dict_set_method_table(struct table *self, const struct table_methods *methods);
void numba_dict_free(struct table *self);
int64_t numba_dict_length(const struct table *self);
int64_t numba_dict_lookup(const struct table *self, const char *key, int64_t hash, char *value);
int numba_dict_insert(struct table *self, const char *key, int64_t hash, const char *value,
                      char *old);
int numba_dict_insert_ez(struct table *self, const char *key, int64_t hash, const char *value);
int numba_dict_delitem(struct table *self, int64_t hash, int64_t index);
int numba_dict_popitem(struct table *self, char *key, char *value);
size_t numba_dict_iter_sizeof(void);
void numba_dict_iter(struct table_iterator *iterator, const struct table *self);
int numba_dict_iter_next(struct table_iterator *iterator, const char **key, const char **value);
void numba_dict_dump(const struct table *self);

int numba_dict_new_sized(struct table **out, int64_t num_keys, int64_t key_size, int64_t val_size) {
  return table_new_for(out, num_keys, key_size, val_size);
}

void numba_dict_set_method_table(struct table *self, const struct table_methods *methods) {
  self->methods = *methods;
}

void numba_dict_free(struct table *self) { table_free(self); }

int64_t numba_dict_length(const struct table *self) { return self->used; }

/* The number of the entry, whose value is copied; below 0 if there is none, then *value is 0. */
int64_t numba_dict_lookup(const struct table *self, const char *key, int64_t hash, char *value) {
  int64_t index = table_find(self, key, hash);
  if (index < 0) memset(value, 0, self->value_size);
  else memcpy(value, table_value(self, table_entry(self, index)), self->value_size);
  return index;
}

/* `old` receives the value that is replaced; NULL if it is not wanted. */
int numba_dict_insert(struct table *self, const char *key, int64_t hash, const char *value,
                      char *old) {
  int64_t index = table_find(self, key, hash);
  if (index == TABLE_ERROR) return TABLE_COMPARE_FAILED;
  if (index == TABLE_ABSENT) return table_add(self, key, hash, value);
  char *place = table_value(self, table_entry(self, index));
  if (old != NULL) memcpy(old, place, self->value_size);
  if (self->methods.retain_value != NULL) self->methods.retain_value(value); /* may be the same */
  if (self->methods.release_value != NULL) self->methods.release_value(place);
  memcpy(place, value, self->value_size);
  return TABLE_FOUND;
}

int numba_dict_insert_ez(struct table *self, const char *key, int64_t hash, const char *value) {
  return numba_dict_insert(self, key, hash, value, NULL);
}

int numba_dict_delitem(struct table *self, int64_t hash, int64_t index) {
  (void)hash;
  table_delete(self, index, 0);
  return TABLE_OK;
}

/* The last entry; the caller takes over its references. */
int numba_dict_popitem(struct table *self, char *key, char *value) {
  if (self->used == 0) return TABLE_IS_EMPTY;
  int64_t last = self->filled - 1;
  while (*table_hash(table_entry(self, last)) == -1) last--;
  char *entry = table_entry(self, last);
  memcpy(key, table_key(entry), self->key_size);
  memcpy(value, table_value(self, entry), self->value_size);
  table_delete(self, last, 1);
  self->filled = last; /* not `usable`: its slot stays in use */
  return TABLE_OK;
}

size_t numba_dict_iter_sizeof(void) { return sizeof(struct table_iterator); }

void numba_dict_iter(struct table_iterator *iterator, const struct table *self) {
  table_iterate(iterator, self);
}

int numba_dict_iter_next(struct table_iterator *iterator, const char **key, const char **value) {
  int status;
  char *entry = table_next(iterator, &status);
  if (entry == NULL) return status;
  *key = table_key(entry);
  *value = table_value(iterator->table, entry);
  return TABLE_OK;
}

void numba_dict_dump(const struct table *self) { table_dump(self, "dict"); }
