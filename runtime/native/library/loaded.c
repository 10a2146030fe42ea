/* Opening and closing a library, and its symbols. */
#define _GNU_SOURCE /* dlinfo */
#include "library/loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "abi/recursive_lock.h"
#include "library/bridge.h"
#include "library/context.h"
#include "library/cpu_levels.h"
#include "library/opening.h"

/* A file that is replaced while it is opened is opened again; no try begins after RETRY_NS. */
enum { MAX_TRIES = 8, RETRY_NS = 1000000000, FORK_PATIENCE = 1 /* second */ };

/* The open libraries. The lock also covers dlopen and dlclose, so that no other thread of the core
 * opens a library between the test whether a name is in use and its use. It is recursive because a
 * library's constructor may load another library. */
static struct loaded *open_libraries;
static pthread_mutex_t lock;
static _Thread_local int fork_has_lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;

static void reset_lock(void) { recursive_lock_init(&lock); }

/* A child that is forked while another thread is in dlopen or dlclose inherits an incomplete state,
 * and glibc aborts the child at its next dlopen. So a fork waits for the lock. The wait is bounded,
 * because a constructor may wait for the GIL, which the forking thread holds. */
static void before_fork(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += FORK_PATIENCE;
  fork_has_lock = pthread_mutex_timedlock(&lock, &until) == 0;
}

static void after_fork(void) {
  if (fork_has_lock) pthread_mutex_unlock(&lock);
}

/* The child resets the lock: its only thread has another id than the owner of the lock. */
static void make_lock(void) {
  reset_lock();
  (void)pthread_atfork(before_fork, after_fork, reset_lock);
}

static void enter(void) {
  pthread_once(&lock_once, make_lock);
  pthread_mutex_lock(&lock);
}

static void leave(void) { pthread_mutex_unlock(&lock); }

static const struct loaded *open_library_of(const struct file_key *key) {
  const struct loaded *library = open_libraries;
  while (library != NULL && !file_key_equal(&library->key, key)) library = library->next;
  return library;
}

/* Return the load address of a handle's image. dlinfo finds a link map for any handle of dlopen. */
static const uint8_t *address_of(void *handle) {
  struct link_map *link_map = NULL;
  (void)dlinfo(handle, RTLD_DI_LINKMAP, &link_map);
  return link_map != NULL ? (const uint8_t *)link_map->l_addr : NULL;
}

static void add_open_library(struct loaded *library) {
  library->next = open_libraries;
  open_libraries = library;
  library->context = context_open(library);
}

/* True if the library leaves a function undefined that takes its context. */
static int is_looking_up(const struct loaded *library) {
  for (uint64_t i = 1; i < library->image.num_symbols; i++) {
    struct elf_symbol symbol;
    const char *name = elf_symbol_at(&library->image, elf_at_loaded, library->address, i, &symbol);
    if (symbol.section != SHN_UNDEF || symbol.bind == STB_WEAK) continue;
    if (strcmp(name, "TVMFFIEnvModLookupFromImports") == 0) return 1;
    if (strcmp(name, "TVMBackendGetFuncFromEnv") == 0) return 1;
  }
  return 0;
}

/* Another runtime would follow the core's context as a pointer to its own module. If it loaded the
 * library before, it has set the context. */
static int refuse_other_runtime(const struct opening *self) {
  struct loaded *library = self->library;
  if (self->is_bound || !context_is_unset(library) || !is_looking_up(library)) return 0;
  const char *reason = self->bridged ? "it was opened while that runtime's functions were global"
                                     : "it depends on the library of that runtime";
  load_error_set(self->error, "dlopen",
                 "is bound to another TVM runtime, which has not loaded it: %s; load it with that "
                 "runtime first, or compile it with TVM's pointer variables",
                 reason);
  dlclose(library->handle);
  free(library->spelling);
  return -1;
}

static int open_checked(struct opening *self) {
  enter();
  self->same = open_library_of(&self->library->key);
  int status = opening_run(self);
  if (status == 0) self->library->address = address_of(self->library->handle);
  if (status == 0) status = refuse_other_runtime(self);
  if (status == 0) add_open_library(self->library);
  leave();
  return status;
}

static int open_once(struct opening *self) {
  struct loaded *library = self->library;
  struct checked_file file;
  self->changed = 0;
  if (checked_file_open_with(self->path, elf_native_machine(), &file, &self->descriptor,
                             self->error) != 0)
    return -1;
  library->key = file.key;
  library->image = file.image;
  self->bridged = bridge_is_needed(&file);
  int status = checksums_verify("__packer_checksums", checked_file_find, &file, &library->checksums,
                                self->error);
  if (status == 0) status = cpu_levels_check(checked_file_find, &file, self->error);
  checked_file_close(&file);
  if (status == 0) status = open_checked(self);
  close(self->descriptor);
  return status;
}

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int loaded_open(struct loaded *library, const char *path, struct load_error *error) {
  struct opening opening = {.library = library, .path = path, .error = error};
  int64_t start = now_ns();
  int tries = 0;
  do {
    if (open_once(&opening) == 0) return 0;
    if (!opening.changed) return -1;
  } while (++tries < MAX_TRIES && now_ns() - start < RETRY_NS);
  return load_error_set(error, "busy",
                        "was replaced during %d attempts to open it, so code that was not checked "
                        "may have run; load it again",
                        tries);
}

/* True if the image is mapped after dlclose: others opened the file, or it is never unmapped. */
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
  if (library->context != NULL) unused = context_close(library->context, is_still_mapped(library));
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

/* True if the symbol shows that TVM made the library. The pointer for raising errors does not show
 * it: packer's wrappers, and C code with dso_abi.h, define it as well. Nor do the functions for the
 * current stream, which code that people write calls. */
static int is_mark_of_tvm(const char *name, const struct elf_symbol *symbol) {
  static const char *const others[] = {"TVMFFIErrorSetRaisedFromCStr", "TVMFFIEnvGetStream",
                                       "TVMFFIEnvSetStream"};
  const char *function = begins_with(name, "__") ? name + 2 : name;
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (strcmp(function, others[i]) == 0) return 0;
  if (begins_with(name, "__tvm_") || begins_with(name, "__TVM")) return 1;
  return symbol->section == SHN_UNDEF && begins_with(name, "TVM");
}

int loaded_is_tvm(const struct loaded *library) {
  int is_tvm = 0;
  for (uint64_t i = 1; i < library->image.num_symbols; i++) {
    struct elf_symbol symbol;
    const char *name = elf_symbol_at(&library->image, elf_at_loaded, library->address, i, &symbol);
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

void *loaded_address(const struct loaded *library, const char *name) {
  struct elf_symbol symbol;
  if (!loaded_symbol(library, name, &symbol)) return NULL;
  int is_function = symbol.type == STT_FUNC || symbol.type == STT_GNU_IFUNC;
  return is_function ? dlsym(library->handle, name) : NULL;
}
