/* The functions that the code of a library found, by name. No Python.h.
 *
 * Readers never wait: any thread may ask at any time. Writers have the GIL, and so take turns. What
 * was found stays until the table is cleared, since code may remember it. */
#ifndef DSO_PACKER_LIBRARY_FOUND_H
#define DSO_PACKER_LIBRARY_FOUND_H

#include "abi/object.h"

enum { FOUND_BUCKETS = 64 };

struct found_table {
  struct found *buckets[FOUND_BUCKETS];
};

/* What was found by this name, borrowed, or NULL when it has to be looked up. */
dso_object *found_get(const struct found_table *table, const char *name);

/* Look-ups count by the version of all trees: what was found at an older one is asked for again. */
uint64_t found_version(void);
void found_expire(void);

/* What was found by this name before is right at `version` too if its provider is the same:
 * returns it, or NULL. A provider is compared only; its function keeps it alive. */
dso_object *found_renew(struct found_table *table, const char *name, const void *provider,
                        uint64_t version);

/* Remember a function, whose reference is used up; 0, or -1 without memory. */
int found_add(struct found_table *table, const char *name, const void *provider, uint64_t version,
              dso_object *function);

/* Call visit for each function, until it returns other than 0; that is returned. */
int found_visit(const struct found_table *table, int (*visit)(dso_object *function, void *arg),
                void *arg);

/* Look-ups find nothing from here on, but the functions stay; tells `retire` of each of them. */
void found_retire(struct found_table *table,
                  void (*retire)(dso_object *function, const char *name, void *arg), void *arg);

/* Release all functions; nobody may be reading any more. */
void found_clear(struct found_table *table);

#endif
