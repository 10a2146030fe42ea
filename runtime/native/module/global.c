/* The list of global functions. It only grows, so any thread may read it without a lock. */
#include "module/global.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "library/import_cache.h"
#include "module/embedder_lock.h"

struct global {
  struct global *next;
  dso_function *function;
  char name[];
};

static struct global *globals; /* entries are never changed or removed */

/* ---- Look-up */

dso_function_object *built_in_find(const char *name) {
  for (const struct built_in_function *row = built_in_functions; row->name != NULL; row++)
    if (strcmp(row->name, name) == 0) return row->function;
  return NULL;
}

static dso_function *find_registered(const char *name) {
  for (const struct global *at = __atomic_load_n(&globals, __ATOMIC_ACQUIRE); at; at = at->next)
    if (strcmp(at->name, name) == 0) return at->function;
  return NULL;
}

int global_find(const char *name, dso_function **function) {
  dso_function *found = find_registered(name);
  if (found == NULL) found = built_in_find(name);
  if (found == NULL) return 0;
  object_retain(&found->object);
  *function = found;
  return 1;
}

int global_names(struct names *names) {
  int status = 0;
  const struct global *at = __atomic_load_n(&globals, __ATOMIC_ACQUIRE);
  for (; at != NULL && status == 0; at = at->next) status = names_add(names, at->name);
  return status;
}

int built_in_add_names(struct names *names) {
  int status = 0;
  for (const struct built_in_function *row = built_in_functions; row->name != NULL && status == 0;
       row++)
    status = names_add(names, row->name);
  return status;
}

int global_register(const char *name, dso_function *function) {
  size_t size = strlen(name) + 1;
  struct global *added = heap_new(sizeof *added + size);
  if (added == NULL) return raised_format("OutOfMemoryError", "no memory to register a function");
  memcpy(added->name, name, size);
  added->function = function;
  embedder_lock();
  int is_taken = find_registered(name) != NULL;
  if (!is_taken) {
    object_retain(&function->object);
    added->next = globals;
    __atomic_store_n(&globals, added, __ATOMIC_RELEASE);
  }
  embedder_unlock();
  if (is_taken) {
    free(added);
    return raised_format("ValueError", "global function '%s' is already registered", name);
  }
  import_cache_expire();
  return 0;
}
