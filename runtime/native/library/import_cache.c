/* The import cache of a context: buckets of entries that readers follow without a lock. */
#include "library/import_cache.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"

/* Immutable after it is published in its bucket, except version and provider. A newer entry of the
 * same name precedes it. */
struct cached_import {
  struct cached_import *next;
  const void *provider;
  uint64_t version;
  dso_object *function;
  char name[];
};

static uint64_t current_version = 1;

uint64_t import_cache_version(void) { return __atomic_load_n(&current_version, __ATOMIC_ACQUIRE); }

void import_cache_expire(void) { __atomic_add_fetch(&current_version, 1, __ATOMIC_ACQ_REL); }

/* FNV-1a */
static size_t bucket_of(const char *name) {
  uint32_t hash = 2166136261;
  for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 16777619;
  return (hash ^ hash >> 16) % IMPORT_CACHE_BUCKETS;
}

static struct cached_import *newest(const struct import_cache *table, const char *name) {
  struct cached_import *found = __atomic_load_n(&table->buckets[bucket_of(name)], __ATOMIC_ACQUIRE);
  while (found != NULL && strcmp(found->name, name) != 0) found = found->next;
  return found;
}

dso_object *import_cache_get(const struct import_cache *table, const char *name) {
  const struct cached_import *found = newest(table, name);
  if (found == NULL) return NULL;
  uint64_t version = __atomic_load_n(&found->version, __ATOMIC_ACQUIRE);
  return version == import_cache_version() ? found->function : NULL;
}

dso_object *import_cache_renew(struct import_cache *table, const char *name, const void *provider,
                               uint64_t version) {
  struct cached_import *found = newest(table, name);
  if (found == NULL || found->provider != provider) return NULL;
  __atomic_store_n(&found->version, version, __ATOMIC_RELEASE);
  return found->function;
}

int import_cache_add(struct import_cache *table, const char *name, const void *provider,
                     uint64_t version, dso_object *function) {
  size_t size = strlen(name) + 1;
  struct cached_import *found = heap_new(sizeof *found + size);
  if (found == NULL) {
    object_release(function);
    return -1;
  }
  struct cached_import **bucket = &table->buckets[bucket_of(name)];
  *found = (struct cached_import){
      .next = *bucket, .provider = provider, .version = version, .function = function};
  memcpy(found->name, name, size);
  __atomic_store_n(bucket, found, __ATOMIC_RELEASE);
  return 0;
}

int import_cache_visit(const struct import_cache *table,
                       int (*visit)(dso_object *function, void *arg), void *arg) {
  for (size_t i = 0; i < IMPORT_CACHE_BUCKETS; i++)
    for (struct cached_import *found = table->buckets[i]; found != NULL; found = found->next) {
      int status = visit(found->function, arg);
      if (status != 0) return status;
    }
  return 0;
}

void import_cache_retire(struct import_cache *table,
                         void (*retire)(dso_object *function, const char *name, void *arg),
                         void *arg) {
  for (size_t i = 0; i < IMPORT_CACHE_BUCKETS; i++)
    for (struct cached_import *found = table->buckets[i]; found != NULL; found = found->next) {
      if (found->provider == NULL) continue;
      found->provider = NULL;
      __atomic_store_n(&found->version, 0, __ATOMIC_RELEASE);
      retire(found->function, found->name, arg);
    }
}

void import_cache_clear(struct import_cache *table) {
  for (size_t i = 0; i < IMPORT_CACHE_BUCKETS; i++) {
    struct cached_import *found = table->buckets[i];
    table->buckets[i] = NULL;
    while (found != NULL) {
      struct cached_import *next = found->next;
      object_release(found->function);
      free(found);
      found = next;
    }
  }
}
