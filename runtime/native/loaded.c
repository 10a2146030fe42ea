#define _GNU_SOURCE /* dlinfo */
#include "loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bridge.h"
#include "context.h"
#include "heap.h"
#include "system_lib.h"

enum { MAX_TRIES = 8, FORK_PATIENCE = 1 /* second */ };

/* The open libraries. The lock also covers dlopen and dlclose, so that between asking whether a
 * name is taken and taking it no other thread of ours comes in; it is recursive because a library's
 * constructor may load another one. */
static struct loaded *open_libraries;
static pthread_mutex_t lock;
static _Thread_local int fork_has_lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static void reset_lock(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

/* A child that is forked while another thread is in dlopen or dlclose inherits that half done, and
 * glibc aborts it at its next dlopen. So a fork waits for them; not for ever, since a constructor
 * may want the GIL, which the thread that forks has. */
static void before_fork(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += FORK_PATIENCE;
  fork_has_lock = pthread_mutex_timedlock(&lock, &until) == 0;
}

static void after_fork(void) {
  if (fork_has_lock) pthread_mutex_unlock(&lock);
}

/* The child has one thread, by another id than the one that took the lock. */
static void make_lock(void) {
  reset_lock();
  (void)pthread_atfork(before_fork, after_fork, reset_lock);
}

static void enter(void) {
  pthread_once(&lock_once, make_lock);
  pthread_mutex_lock(&lock);
}

static void leave(void) { pthread_mutex_unlock(&lock); }

/* dir/name spelled as no one has before: the bits of a counter as "./" (1) and "/" (0) between.
 * It begins with a pattern that no person writes. Called with the lock held. */
static char *fresh_spelling(const char *path) {
  static uint64_t counter = 0xd50;
  uint64_t count = counter++;
  const char *name = strrchr(path, '/') + 1;
  size_t dir_length = (size_t)(name - path);
  char *spelling = heap_new(strlen(path) + 2 * 64 + 1);
  if (spelling == NULL) return NULL;
  memcpy(spelling, path, dir_length);
  char *end = spelling + dir_length;
  for (; count != 0; count >>= 1) {
    if (count & 1) *end++ = '.';
    *end++ = '/';
  }
  strcpy(end, name);
  return spelling;
}

static int name_is_taken(const char *path) {
  void *handle = dlopen(path, RTLD_NOLOAD | RTLD_NOW);
  if (handle != NULL) dlclose(handle);
  return handle != NULL;
}

/* dlopen compares names before inodes: a taken name may stand for an older file. A library of
 * ours is asked for by the name it was opened under, since dlopen keeps each new one it is told. */
static char *choose_spelling(const char *path, const struct file_key *key) {
  for (const struct loaded *other = open_libraries; other != NULL; other = other->next)
    if (file_key_equal(&other->key, key)) return heap_copy_text(other->spelling);
  return name_is_taken(path) ? fresh_spelling(path) : heap_copy_text(path);
}

/* Returns 0 with the handle, or -1. `bridged`: it is to find what the core provides. */
static int open_handle(struct loaded *library, const char *path, int bridged,
                       struct load_error *error) {
  struct system_lib_refusal refusal;
  library->spelling = choose_spelling(path, &library->key);
  if (library->spelling == NULL) return load_error_set(error, "io", "out of memory");
  system_lib_begin(&refusal);
  if (bridged)
    library->handle = bridge_open(library->spelling, error);
  else if ((library->handle = dlopen(library->spelling, RTLD_NOW | RTLD_LOCAL)) == NULL)
    load_error_dlopen(error, library->spelling);
  int is_refused = system_lib_end(&refusal);
  if (is_refused && library->handle != NULL) {
    load_error_set(error, "symbol", "%s", refusal.text);
    dlclose(library->handle);
    library->handle = NULL;
  }
  if (library->handle == NULL) free(library->spelling);
  return library->handle != NULL ? 0 : -1;
}

/* Where the image of a handle lies. dlinfo finds a link map for any handle of dlopen. */
static const uint8_t *address_of(void *handle) {
  struct link_map *link_map = NULL;
  (void)dlinfo(handle, RTLD_DI_LINKMAP, &link_map);
  return link_map != NULL ? (const uint8_t *)link_map->l_addr : NULL;
}

static void join(struct loaded *library) {
  library->address = address_of(library->handle);
  library->next = open_libraries;
  open_libraries = library;
  library->context = context_open(library);
}

/* Returns 0 with the library open, or -1; *changed says that `path` was replaced meanwhile. */
static int open_once(struct loaded *library, const char *path, struct load_error *error,
                     int *changed) {
  struct checked_file file;
  struct file_key key;
  *changed = 0;
  if (checked_file_open(path, elf_native_machine(), &file, error) != 0) return -1;
  library->key = file.key;
  library->image = file.image;
  int bridged = bridge_is_needed(&file);
  checked_file_close(&file);
  enter();
  int status = open_handle(library, path, bridged, error);
  if (status == 0) join(library);
  leave();
  *changed = file_key_at(path, &key) != 0 || !file_key_equal(&key, &library->key);
  if (status != 0 || !*changed) return status;
  loaded_close(library);
  return -1;
}

int loaded_open(struct loaded *library, const char *path, struct load_error *error) {
  int changed = 0;
  for (int tries = 0; tries < MAX_TRIES; tries++) {
    if (open_once(library, path, error, &changed) == 0) return 0;
    if (!changed) return -1;
  }
  return load_error_set(error, "busy", "replaced %d times while it was opened", MAX_TRIES);
}

/* Whether the image stays although we closed it: others opened the file, or it never goes. */
static int is_still_mapped(const struct loaded *library) {
  void *handle = dlopen(library->spelling, RTLD_NOLOAD | RTLD_NOW);
  if (handle == NULL) return 0;
  int is_same = address_of(handle) == library->address;
  dlclose(handle);
  return is_same;
}

void loaded_close(struct loaded *library) {
  struct context *unused = NULL;
  enter();
  struct loaded **link = &open_libraries;
  while (*link != library) link = &(*link)->next;
  *link = library->next;
  dlclose(library->handle);
  if (library->context != NULL)
    unused = context_close(library->context, is_still_mapped(library));
  leave();
  if (unused != NULL) context_free(unused);
  free(library->spelling);
}

int loaded_symbol(const struct loaded *library, const char *name, struct elf_symbol *symbol) {
  return elf_lookup(&library->image, elf_at_loaded, library->address, name, symbol);
}

static int begins_with(const char *name, const char *prefix) {
  return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* The pointer by which code raises says nothing: packer's wrappers, and C code with dso_abi.h, have it
 * as well. */
static int is_mark_of_tvm(const char *name, const struct elf_symbol *symbol) {
  const char *function = begins_with(name, "__") ? name + 2 : name;
  if (strcmp(function, "TVMFFIErrorSetRaisedFromCStr") == 0) return 0;
  if (begins_with(name, "__tvm_") || begins_with(name, "__TVM")) return 1;
  return symbol->section == SHN_UNDEF && begins_with(name, "TVM");
}

int loaded_is_tvm(const struct loaded *library) {
  int is_tvm = 0;
  for (uint64_t i = 1; i < library->image.num_symbols; i++) {
    struct elf_symbol symbol;
    const char *name =
        elf_symbol_at(&library->image, elf_at_loaded, library->address, i, &symbol);
    if (begins_with(name, "__packer_")) return 0;
    is_tvm |= is_mark_of_tvm(name, &symbol);
  }
  return is_tvm;
}

const char *loaded_data(const struct loaded *library, const struct elf_symbol *symbol,
                        const uint8_t **bytes) {
  *bytes = library->address + symbol->value;
  return elf_not_data(&library->image, symbol);
}

const char *loaded_code(const struct loaded *library, const struct elf_symbol *symbol,
                        const uint8_t **code) {
  *code = library->address + symbol->value;
  return elf_not_code(&library->image, symbol);
}

int loaded_find(const void *library, const char *name, int is_code, const uint8_t **bytes,
                size_t *nbytes) {
  struct elf_symbol symbol;
  const uint8_t *code;
  if (!loaded_symbol(library, name, &symbol)) return 0;
  if (is_code) return loaded_code(library, &symbol, &code) == NULL;
  *nbytes = (size_t)symbol.size;
  return loaded_data(library, &symbol, bytes) == NULL;
}
