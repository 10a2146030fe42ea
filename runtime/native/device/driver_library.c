/* Opening a driver's shared library, and filling its table of functions. */
#include "device/driver_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[512];

/* Store the address of each function; return the name of the first missing one, or NULL. */
static const char *find_all(void *handle, const struct driver_library *library) {
  for (size_t i = 0; i < library->num_functions; i++) {
    const struct driver_function *function = &library->functions[i];
    void *address = dlsym(handle, function->name);
    if (address == NULL && !function->may_be_missing) return function->name;
    /* ISO C has no cast from a data pointer to a function pointer. */
    memcpy((char *)library->table + function->offset, &address, sizeof address);
  }
  return NULL;
}

/* Called with the lock held. An opened library is never closed: drivers start threads. */
static const char *open_locked(struct driver_library *library) {
  void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *why = dlerror();
    snprintf(text, sizeof text, "no %s found: %s", library->kind, why ? why : library->file);
    return text;
  }
  const char *missing = find_all(handle, library);
  if (missing == NULL) {
    atomic_store_explicit(&library->is_open, 1, memory_order_release);
    return NULL;
  }
  snprintf(text, sizeof text, "%s is too old, expected %s or newer: it does not define %s",
           library->file, library->oldest, missing);
  dlclose(handle);
  return text;
}

int driver_library_open(struct driver_library *library, const char **wrong) {
  *wrong = NULL;
  if (driver_library_is_open(library)) return 0;
  pthread_mutex_lock(&library->lock);
  if (!driver_library_is_open(library)) *wrong = open_locked(library);
  pthread_mutex_unlock(&library->lock);
  return *wrong == NULL ? 0 : -1;
}
