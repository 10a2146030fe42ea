/* A hash table that keeps the order of insertion: open addressing of slots, which contain the
 * numbers of entries. */
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNUSED = -1, DELETED = -2, LEAST_SIZE = 8, DELETED_HASH = -1 };

/* ---- Slots */

/* The width is a constant in loops: one loop for each. */
static inline int64_t get_slot_of(const struct table *self, size_t slot, int width) {
  const char *at = self->slots;
  switch (width) {
    case 1: return ((const int8_t *)at)[slot];
    case 2: return ((const int16_t *)(const void *)at)[slot];
    case 4: return ((const int32_t *)(const void *)at)[slot];
    default: return ((const int64_t *)(const void *)at)[slot];
  }
}

static inline int64_t get_slot(const struct table *self, size_t slot) {
  return get_slot_of(self, slot, self->width);
}

static inline void set_slot(struct table *self, size_t slot, int64_t entry) {
  char *at = self->slots;
  switch (self->width) {
    case 1: ((int8_t *)at)[slot] = (int8_t)entry; break;
    case 2: ((int16_t *)(void *)at)[slot] = (int16_t)entry; break;
    case 4: ((int32_t *)(void *)at)[slot] = (int32_t)entry; break;
    default: ((int64_t *)(void *)at)[slot] = entry; break;
  }
}

/* The sequence of slots of a hash. Multiplication by 5 visits every slot; the higher bits of the
 * hash come in one after the other. */
struct probe {
  size_t slot, rest, mask;
};

static inline struct probe begin(const struct table *self, int64_t hash) {
  size_t mask = (size_t)self->size - 1;
  return (struct probe){(size_t)hash & mask, (size_t)hash, mask};
}

static inline void step(struct probe *probe) {
  probe->rest >>= 5;
  probe->slot = (probe->slot * 5 + probe->rest + 1) & probe->mask;
}

static size_t free_slot(const struct table *self, int64_t hash) {
  struct probe probe = begin(self, hash);
  while (get_slot(self, probe.slot) >= 0) step(&probe);
  return probe.slot;
}

static size_t slot_of(const struct table *self, int64_t hash, int64_t entry) {
  struct probe probe = begin(self, hash);
  while (get_slot(self, probe.slot) != entry) step(&probe);
  return probe.slot;
}

/* ---- Memory */

static size_t aligned(size_t size) { return (size + 7) & ~(size_t)7; }

/* Allocate the entries and slots of an empty table of this size. */
static int allocate(struct table *self, int64_t size) {
  size_t usable = (size_t)size * 2 / 3, entries, nbytes;
  int width = size <= INT8_MAX + 1 ? 1 : size <= INT16_MAX + 1 ? 2 : size <= INT32_MAX ? 4 : 8;
  if (__builtin_mul_overflow(usable, self->entry_size, &entries) ||
      __builtin_add_overflow(entries, (size_t)width * (size_t)size, &nbytes))
    return TABLE_NO_MEMORY;
  char *memory = malloc(nbytes);
  if (memory == NULL) return TABLE_NO_MEMORY;
  self->entries = memory;
  self->slots = memory + entries;
  self->width = width;
  self->size = size;
  self->usable = (int64_t)usable;
  self->filled = 0;
  memset(self->slots, UNUSED, (size_t)width * (size_t)size);
  return TABLE_OK;
}

int table_new(struct table **out, int64_t size, int64_t key_size, int64_t value_size) {
  struct table *self = calloc(1, sizeof *self);
  if (self == NULL) return TABLE_NO_MEMORY;
  self->key_size = (size_t)key_size;
  self->value_size = (size_t)value_size;
  self->value_at = sizeof(int64_t) + aligned(self->key_size);
  self->entry_size = self->value_at + aligned(self->value_size);
  if (allocate(self, size) != TABLE_OK) {
    free(self);
    return TABLE_NO_MEMORY;
  }
  *out = self;
  return TABLE_OK;
}

int table_new_for(struct table **out, int64_t num_keys, int64_t key_size, int64_t value_size) {
  const int64_t most = (int64_t)1 << 62;
  int64_t size = LEAST_SIZE;
  if (num_keys > most / 2) return TABLE_NO_MEMORY;
  if (num_keys > LEAST_SIZE * 2 / 3)
    while (size <= num_keys + num_keys / 2) size *= 2;
  return table_new(out, size, key_size, value_size);
}

static void release(const struct table *self, char *entry) {
  if (self->methods.release_key != NULL) self->methods.release_key(table_key(entry));
  if (self->methods.release_value != NULL) self->methods.release_value(table_value(self, entry));
}

void table_free(struct table *self) {
  if (self->methods.release_key != NULL || self->methods.release_value != NULL)
    for (int64_t i = 0; i < self->filled; i++) {
      char *entry = table_entry(self, i);
      if (*table_hash(entry) != DELETED_HASH) release(self, entry);
    }
  free(self->entries);
  free(self);
}

static void copy_entries(struct table *self, const struct table *old) {
  if (old->filled == old->used) {
    memcpy(self->entries, old->entries, (size_t)old->filled * old->entry_size);
    self->filled = old->filled;
    return;
  }
  for (int64_t i = 0; i < old->filled; i++) {
    char *from = table_entry(old, i);
    if (*table_hash(from) != DELETED_HASH)
      memcpy(table_entry(self, self->filled++), from, self->entry_size);
  }
}

/* Move the entries to a table three times as large as their number, without the deleted ones. */
static int resize(struct table *self) {
  struct table old = *self;
  int64_t size = LEAST_SIZE;
  while (size < self->used * 3) size *= 2;
  if (allocate(self, size) != TABLE_OK) return TABLE_NO_MEMORY;
  copy_entries(self, &old);
  for (int64_t i = 0; i < self->filled; i++)
    set_slot(self, free_slot(self, *table_hash(table_entry(self, i))), i);
  self->usable -= self->filled;
  self->resizes++;
  free(old.entries);
  return TABLE_OK;
}

/* ---- Entries */

static inline int is_equal(const struct table *self, const char *key, const char *other) {
  if (self->methods.is_equal != NULL) return self->methods.is_equal(key, other);
  return memcmp(key, other, self->key_size) == 0;
}

static inline __attribute__((always_inline)) int64_t find_in(const struct table *self,
                                                             const char *key, int64_t hash,
                                                             int width) {
  for (struct probe probe = begin(self, hash);; step(&probe)) {
    int64_t index = get_slot_of(self, probe.slot, width);
    if (index == UNUSED) return TABLE_ABSENT;
    if (index == DELETED) continue;
    char *entry = table_entry(self, index);
    if (*table_hash(entry) != hash) continue;
    int equal = is_equal(self, table_key(entry), key);
    if (equal < 0) return TABLE_ERROR;
    if (equal > 0) return index;
  }
}

int64_t table_find(const struct table *self, const char *key, int64_t hash) {
  switch (self->width) {
    case 1: return find_in(self, key, hash, 1);
    case 2: return find_in(self, key, hash, 2);
    case 4: return find_in(self, key, hash, 4);
    default: return find_in(self, key, hash, 8);
  }
}

int table_add(struct table *self, const char *key, int64_t hash, const char *value) {
  if (self->usable <= 0 && resize(self) != TABLE_OK) return TABLE_NO_MEMORY;
  char *entry = table_entry(self, self->filled);
  set_slot(self, free_slot(self, hash), self->filled);
  *table_hash(entry) = hash;
  memcpy(table_key(entry), key, self->key_size);
  if (self->value_size > 0) memcpy(table_value(self, entry), value, self->value_size);
  if (self->methods.retain_key != NULL) self->methods.retain_key(key);
  if (self->methods.retain_value != NULL) self->methods.retain_value(value);
  self->used++;
  self->usable--;
  self->filled++;
  return TABLE_OK;
}

void table_delete(struct table *self, int64_t index, int is_taken) {
  char *entry = table_entry(self, index);
  set_slot(self, slot_of(self, *table_hash(entry), index), DELETED);
  *table_hash(entry) = DELETED_HASH;
  self->used--;
  if (!is_taken) release(self, entry);
}

/* ---- Iterators */

void table_iterate(struct table_iterator *iterator, const struct table *table) {
  *iterator =
      (struct table_iterator){.table = table, .resizes = table->resizes, .used = table->used};
}

char *table_next(struct table_iterator *iterator, int *status) {
  const struct table *table = iterator->table;
  *status = TABLE_MUTATED;
  if (table->resizes != iterator->resizes || table->used != iterator->used) return NULL;
  *status = TABLE_EXHAUSTED;
  while (iterator->next < table->filled) {
    char *entry = table_entry(table, iterator->next++);
    if (*table_hash(entry) == DELETED_HASH) continue;
    *status = TABLE_OK;
    return entry;
  }
  return NULL;
}

/* ---- For debugging */

static void print_bytes(const char *what, const char *bytes, size_t count) {
  printf(" %s", what);
  for (size_t i = 0; i < count; i++) printf("%02x", (unsigned)(unsigned char)bytes[i]);
}

void table_dump(const struct table *self, const char *what) {
  printf("%s of %lld\n", what, (long long)self->used);
  for (int64_t i = 0; i < self->filled; i++) {
    char *entry = table_entry(self, i);
    if (*table_hash(entry) == DELETED_HASH) continue;
    printf("  hash=%llx", (unsigned long long)*table_hash(entry));
    print_bytes("key=", table_key(entry), self->key_size);
    if (self->value_size > 0) print_bytes("value=", table_value(self, entry), self->value_size);
    printf("\n");
  }
}
