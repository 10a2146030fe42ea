/* The functions that the code of a library found, by name. No Python.h.
 *
 * Readers never wait: any thread may ask at any time. Writers have the GIL, and so take turns. What
 * was found stays until the table is cleared, since code may remember it. */
#ifndef DSO_PACKER_LIBRARY_IMPORT_CACHE_H
#define DSO_PACKER_LIBRARY_IMPORT_CACHE_H

#include "abi/object.h"

enum { IMPORT_CACHE_BUCKETS = 64 };

struct import_cache {
  struct cached_import *buckets[IMPORT_CACHE_BUCKETS];
};

/* What was found by this name, borrowed, or NULL when it has to be looked up. */
dso_object *import_cache_get(const struct import_cache *table, const char *name);

/* Look-ups count by the version of all trees: what was found at an older one is asked for again. */
uint64_t import_cache_version(void);
void import_cache_expire(void);

/* What was found by this name before is right at `version` too if its provider is the same:
 * returns it, or NULL. A provider is compared only; its function keeps it alive. */
dso_object *import_cache_renew(struct import_cache *table, const char *name, const void *provider,
                               uint64_t version);

/* Remember a function, whose reference is used up; 0, or -1 without memory. */
int import_cache_add(struct import_cache *table, const char *name, const void *provider,
                     uint64_t version, dso_object *function);

/* Call visit for each function, until it returns other than 0; that is returned. */
int import_cache_visit(const struct import_cache *table,
                       int (*visit)(dso_object *function, void *arg), void *arg);

/* Look-ups find nothing from here on, but the functions stay; tells `retire` of each of them. */
void import_cache_retire(struct import_cache *table,
                         void (*retire)(dso_object *function, const char *name, void *arg),
                         void *arg);

/* Release all functions; nobody may be reading any more. */
void import_cache_clear(struct import_cache *table);

#endif
