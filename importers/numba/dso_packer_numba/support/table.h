/* table.h: a hash table that keeps the order of insertion, for typed dictionaries and sets. */
#ifndef DSO_PACKER_NUMBA_TABLE_H
#define DSO_PACKER_NUMBA_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The results that compiled code compares with. TABLE_FOUND: also "replaced". */
enum {
  TABLE_OK = 0,
  TABLE_FOUND = 1,
  TABLE_NO_MEMORY = -1,
  TABLE_MUTATED = -2,
  TABLE_EXHAUSTED = -3,
  TABLE_IS_EMPTY = -4,
  TABLE_COMPARE_FAILED = -5
};

/* The results of table_find besides an index of an entry. */
enum { TABLE_ABSENT = -1, TABLE_ERROR = -3 };

/* Of keys and values that need more than their bytes; each may be NULL. */
struct table_methods {
  int (*is_equal)(const char *key, const char *other); /* -1: the comparison failed */
  void (*retain_key)(const void *key);
  void (*release_key)(const void *key);
  void (*retain_value)(const void *value);
  void (*release_value)(const void *value);
};

/* An entry is its hash, the key and the value, each aligned to 8 bytes. The hash -1, which no key
 * has, marks a deleted entry. The slots contain numbers of entries of 1, 2, 4 or 8 bytes. */
struct table {
  int64_t used;
  int64_t size;   /* of slots: a power of two, at least 8 */
  int64_t usable; /* entries until the next resize */
  int64_t filled; /* entries, with the deleted ones */
  int64_t resizes;
  size_t key_size, value_size, value_at, entry_size;
  struct table_methods methods;
  char *entries; /* the entries, then the slots */
  char *slots;
  int width; /* of a slot, in bytes */
};

/* Compiled code reserves 32 bytes for it. */
struct table_iterator {
  const struct table *table;
  int64_t resizes;
  int64_t used;
  int64_t next;
};
_Static_assert(sizeof(struct table_iterator) == 32, "Numba's numba_dict_iter_sizeof");

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

/* Each returns one of the results above. The size of the first is a power of two. */
int table_new(struct table **out, int64_t size, int64_t key_size, int64_t value_size);
int table_new_for(struct table **out, int64_t num_keys, int64_t key_size, int64_t value_size);
void table_free(struct table *self);

/* The number of the key's entry, TABLE_ABSENT or TABLE_ERROR. */
int64_t table_find(const struct table *self, const char *key, int64_t hash);

/* Append an entry with a key that is absent. The table retains key and value. */
int table_add(struct table *self, const char *key, int64_t hash, const char *value);

/* Delete an entry, and release its key and value unless the caller takes them over. */
void table_delete(struct table *self, int64_t entry, int is_taken);

void table_iterate(struct table_iterator *iterator, const struct table *table);

/* The next entry; NULL with the reason in *status. */
char *table_next(struct table_iterator *iterator, int *status);

void table_dump(const struct table *self, const char *what);

#ifndef NB_VISIBLE
#pragma GCC visibility pop
#endif

static inline char *table_entry(const struct table *self, int64_t index) {
  return self->entries + (size_t)index * self->entry_size;
}
static inline int64_t *table_hash(char *entry) { return (int64_t *)(void *)entry; }
static inline char *table_key(char *entry) { return entry + sizeof(int64_t); }
static inline char *table_value(const struct table *self, char *entry) {
  return entry + self->value_at;
}

#endif
