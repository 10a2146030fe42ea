/* The list of global functions. It only grows, so any thread may read it without a lock. */
#include "module/global.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "device/device_set.h"
#include "library/import_cache.h"
#include "module/host_lock.h"
#include "vm/array_function.h"

struct global {
  struct global *next;
  dso_function *function;
  char name[];
};

static struct global *globals; /* entries are never changed or removed */

/* ---- Functions that every program has */

static const struct {
  const char *name;
  dso_function_object *function;
} built_in[] = {{"__tvm_set_device", &device_set_function}, {"ffi.Array", &array_function}};

enum { NUM_BUILT_IN = sizeof built_in / sizeof *built_in };

/* ---- Look-up */

static dso_function *find(const char *name) {
  for (size_t i = 0; i < NUM_BUILT_IN; i++)
    if (strcmp(built_in[i].name, name) == 0) return built_in[i].function;
  for (const struct global *at = __atomic_load_n(&globals, __ATOMIC_ACQUIRE); at; at = at->next)
    if (strcmp(at->name, name) == 0) return at->function;
  return NULL;
}

int global_find(const char *name, dso_function **function) {
  dso_function *found = find(name);
  if (found == NULL) return 0;
  object_retain(&found->object);
  *function = found;
  return 1;
}

int global_names(struct names *names) {
  int status = 0;
  for (size_t i = 0; i < NUM_BUILT_IN && status == 0; i++)
    status = names_add(names, built_in[i].name);
  const struct global *at = __atomic_load_n(&globals, __ATOMIC_ACQUIRE);
  for (; at != NULL && status == 0; at = at->next) status = names_add(names, at->name);
  return status;
}

int global_register(const char *name, dso_function *function) {
  size_t size = strlen(name) + 1;
  struct global *added = heap_new(sizeof *added + size);
  if (added == NULL) return raised_format("OutOfMemoryError", "no memory to register a function");
  memcpy(added->name, name, size);
  added->function = function;
  host_lock();
  int is_taken = find(name) != NULL;
  if (!is_taken) {
    object_retain(&function->object);
    added->next = globals;
    __atomic_store_n(&globals, added, __ATOMIC_RELEASE);
  }
  host_unlock();
  if (is_taken) {
    free(added);
    return raised_format("ValueError", "global function '%s' is already registered", name);
  }
  import_cache_expire();
  return 0;
}
