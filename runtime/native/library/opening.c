/* dlopen of a checked file, and proof that it opened that file. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "library/opening.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "library/bridge.h"
#include "library/registered.h"
#include "library/spelling.h"

/* Return 0 with the handle stored, or -1 with the error filled. */
static int open_handle(const struct opening *self) {
  struct loaded *library = self->library;
  struct refused_registration refusal;
  registration_begin(&refusal);
  if (self->bridged) library->handle = bridge_open(library->spelling, self->error);
  else if ((library->handle = dlopen(library->spelling, RTLD_NOW | RTLD_LOCAL)) == NULL)
    load_error_dlopen(self->error, library->spelling);
  int is_refused = registration_end(&refusal);
  if (is_refused && library->handle != NULL) {
    load_error_set(self->error, "symbol", "%s", refusal.text);
    dlclose(library->handle);
    library->handle = NULL;
  }
  return library->handle != NULL ? 0 : -1;
}

static int count_loads(struct dl_phdr_info *info, size_t size, void *count) {
  (void)size;
  *(unsigned long long *)count = info->dlpi_adds;
  return 1;
}

/* Return the number of objects that the process has loaded so far. */
static unsigned long long num_loads(void) {
  unsigned long long count = 0;
  (void)dl_iterate_phdr(count_loads, &count);
  return count;
}

/* ---- The file that was checked, and the one that dlopen opened */

static int is_at(const char *path, const struct file_key *key) {
  struct file_key now;
  return file_key_at(path, &now) == 0 && file_key_equal(&now, key);
}

/* dlopen compares inodes if it does not know the name. Without /proc only the path is compared.
 * Returns -1 without memory. */
static int is_image_of_file(const struct opening *self) {
  const struct file_key *key = &self->library->key;
  char number[32];
  snprintf(number, sizeof number, "/proc/self/fd/%d", self->descriptor);
  char *name = spelling_new(number);
  if (name == NULL) return load_error_memory(self->error);
  void *same = dlopen(name, RTLD_NOLOAD | RTLD_NOW);
  free(name);
  if (same == NULL) return !is_at(number, key) && is_at(self->path, key);
  dlclose(same);
  return same == self->library->handle;
}

static int is_checked_image(const struct opening *self) {
  if (self->same != NULL) return self->library->handle == self->same->handle;
  return is_image_of_file(self);
}

static int is_unchanged(const struct opening *self) {
  struct file_key now;
  return file_key_of(self->descriptor, &now) == 0 && file_key_equal(&now, &self->library->key);
}

/* ---- Opening */

/* open_spelling returns this if dlopen gave an older file of the same name. */
enum { IS_OLDER = 1 };

/* Open library->spelling, a spelling of self->path. */
static int open_spelling(struct opening *self) {
  struct loaded *library = self->library;
  self->changed = !is_at(self->path, &library->key); /* as late as possible */
  if (self->changed) return -1;
  unsigned long long loads = num_loads();
  if (open_handle(self) != 0) {
    self->changed = !is_at(self->path, &library->key);
    return -1;
  }
  int is_new = num_loads() - loads > (unsigned)self->bridged; /* the bridge counts as well */
  self->is_bound = self->bridged && (is_new || self->same != NULL);
  int is_checked = is_checked_image(self);
  self->changed = is_checked > 0 && !is_unchanged(self);
  if (is_checked > 0 && !self->changed) return 0;
  dlclose(library->handle);
  if (self->changed || is_checked < 0) return -1;
  self->changed = is_new; /* dlopen opened the file that took its place */
  return is_new ? -1 : IS_OLDER;
}

/* An already open library is opened again by the same spelling, because dlopen stores every new
 * one. */
int opening_run(struct opening *self) {
  struct loaded *library = self->library;
  library->spelling = heap_copy_text(self->same != NULL ? self->same->spelling : self->path);
  int status = library->spelling != NULL ? open_spelling(self) : -1;
  if (status == IS_OLDER) {
    free(library->spelling);
    library->spelling = spelling_new(self->path);
    status = library->spelling != NULL ? open_spelling(self) : -1;
  }
  if (library->spelling == NULL) return load_error_memory(self->error);
  if (status != 0) free(library->spelling);
  self->changed |= status == IS_OLDER;
  return status != 0 ? -1 : 0;
}
