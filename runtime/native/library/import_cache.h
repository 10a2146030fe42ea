/* The import cache: the functions that a library's code looked up, by name.
 *
 * Any thread may read at any time and never waits. Writers hold the GIL, so only one writes at a
 * time. An entry stays until the cache is cleared, because code may have stored its function. */
#pragma once

#include "abi/object.h"

enum { IMPORT_CACHE_BUCKETS = 64 };

struct import_cache {
  struct cached_import *buckets[IMPORT_CACHE_BUCKETS];
};

/* Return the cached function of this name, borrowed, or NULL if it must be looked up. */
dso_object *import_cache_get(const struct import_cache *table, const char *name);

/* The version of all module trees. An entry of an older version must be looked up again.
 * import_cache_expire starts a new version. */
uint64_t import_cache_version(void);
void import_cache_expire(void);

/* Mark the entry of this name as valid at `version` if its provider is the same. Return its
 * function, borrowed, or NULL. The provider is only compared; the function keeps it alive. */
dso_object *import_cache_renew(struct import_cache *table, const char *name, const void *provider,
                               uint64_t version);

/* Add a function and take over its reference, also on failure. Return 0, or -1 without memory. */
int import_cache_add(struct import_cache *table, const char *name, const void *provider,
                     uint64_t version, dso_object *function);

/* Call `visit` for each function until it returns nonzero; return that value, or 0. */
int import_cache_visit(const struct import_cache *table,
                       int (*visit)(dso_object *function, void *arg), void *arg);

/* Invalidate all entries, but keep their functions. Calls `retire` once for each function. */
void import_cache_retire(struct import_cache *table,
                         void (*retire)(dso_object *function, const char *name, void *arg),
                         void *arg);

/* Release all functions. No other thread may be reading. */
void import_cache_clear(struct import_cache *table);
