/* Threads open, read, call and close libraries at once, while one file is replaced over and over,
 * look functions up while these change, and use memory that is freed once no call is in progress:
 * the parts of the core without Python.h, for ThreadSanitizer.
 *
 *     threads ROUNDS CHANGING VERSION... : CHANGING is a path in a separate folder, which becomes
 *     each version in turn. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "library/context.h"
#include "abi/embedder.h"
#include "dso_abi.h"
#include "library/in_call.h"
#include "library/loaded.h"
#include "abi/raised.h"

enum { THREADS = 8 };

static long rounds;
static char **paths; /* CHANGING, then the versions */
static int num_paths;
static atomic_bool over;

static _Noreturn void give_up(const char *path, const char *what) {
  fprintf(stderr, "%s: %s\n", path, what);
  exit(1);
}

/* ---- In place of Python: a look-up finds a function that doubles, under a lock */

static pthread_mutex_t gil = PTHREAD_MUTEX_INITIALIZER;

static int twice(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle, (void)num_args;
  *result = (dso_any){.type_index = DSO_INT, .v_int64 = 2 * args[0].v_int64};
  return 0;
}

static dso_object *find_or_make(struct import_cache *table, const char *name) {
  uint64_t version = import_cache_version();
  const void *provider = version % 4 == 0 ? &gil : (const void *)&rounds; /* now and then new */
  dso_object *found = import_cache_renew(table, name, provider, version);
  if (found != NULL) return found;
  dso_function_object *made = object_new(sizeof *made, DSO_FUNCTION, object_free);
  made->safe_call = twice;
  return import_cache_add(table, name, provider, version, &made->object) == 0 ? &made->object : NULL;
}

static void *find_import(struct context *context, const char *name) {
  pthread_mutex_lock(&gil);
  dso_object *found = find_or_make(&context->import_cache, name);
  pthread_mutex_unlock(&gil);
  return found;
}

/* ---- The libraries */

static dso_safe_call function_of(const struct loaded *library, const char *name) {
  struct elf_symbol symbol;
  const uint8_t *code;
  dso_safe_call call;
  if (!loaded_symbol(library, name, &symbol) || loaded_code(library, &symbol, &code) != NULL)
    give_up(library->spelling, name);
  memcpy(&call, &code, sizeof call); /* ISO C has no cast from data to function */
  return call;
}

static void call_add(const struct loaded *library) {
  dso_any args[] = {{.type_index = DSO_INT, .v_int64 = 40}, {.type_index = DSO_INT, .v_int64 = 2}};
  dso_any result = {.type_index = DSO_NONE};
  if (function_of(library, "__tvm_ffi_add")(NULL, args, 2, &result) != 0 || result.v_int64 != 42)
    give_up(library->spelling, "add, expected 42");
}

/* The message is the library's own `version`: no thread gets another's error. */
static void call_fail(const struct loaded *library) {
  struct elf_symbol symbol;
  const uint8_t *version;
  char *kind;
  const char *message;
  uint64_t count = raised_count();
  if (!loaded_symbol(library, "version", &symbol) || loaded_data(library, &symbol, &version))
    give_up(library->spelling, "version");
  if (function_of(library, "__tvm_ffi_fail")(NULL, NULL, 0, NULL) != -1 ||
      raised_take(count, &kind, &message) != 1 || strcmp(message, (const char *)version) != 0)
    give_up(library->spelling, "fail, expected its version");
  raised_free(kind);
}

static void call_look_up(const struct loaded *library) {
  dso_any result = {.type_index = DSO_NONE};
  if (function_of(library, "__tvm_ffi_look_up")(NULL, NULL, 0, &result) != 0 ||
      result.v_int64 != 12)
    give_up(library->spelling, "look_up, expected 12");
}

static void open_call_close(const char *path) {
  struct loaded library;
  struct load_error error;
  if (loaded_open(&library, path, &error) != 0) {
    if (strcmp(error.reason, "busy") == 0) return;
    give_up(path, error.message);
  }
  call_add(&library);
  call_fail(&library);
  call_look_up(&library);
  loaded_close(&library);
}

/* ---- Memory that calls use until it is retired */

struct used {
  struct used *next; /* of all: never freed, as the objects of a context that stays */
  int is_retired;
  long *value;
};

static struct used *current;

static struct used *new_used(struct used *next) {
  struct used *used = calloc(1, sizeof *used);
  used->next = next;
  used->value = calloc(1, sizeof *used->value);
  *used->value = 42;
  return used;
}

static void use(void) {
  struct used *used = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
  struct in_call *here = in_call_enter(used);
  if (!__atomic_load_n(&used->is_retired, __ATOMIC_ACQUIRE) && *used->value != 42)
    give_up("in_call", "a value that was freed");
  in_call_leave(here);
}

static void replace_used(void) {
  struct used *old = current;
  __atomic_store_n(&current, new_used(old), __ATOMIC_RELEASE);
  __atomic_store_n(&old->is_retired, 1, __ATOMIC_RELEASE);
  in_call_barrier();
  while (in_call_any(old)) usleep(1);
  *old->value = 0;
  free(old->value);
}

static void *work(void *first) {
  for (long i = 0; i < rounds; i++) {
    open_call_close(paths[((intptr_t)first + i) % num_paths]);
    for (int j = 0; j < 100; j++) use();
  }
  return NULL;
}

/* Each round ends with another file, of the same name, under CHANGING. */
static void *replace(void *nothing) {
  char fresh[4096];
  snprintf(fresh, sizeof fresh, "%s.fresh", paths[0]);
  for (int i = 0; !over; i++) {
    if (link(paths[1 + i % (num_paths - 1)], fresh) != 0 || rename(fresh, paths[0]) != 0)
      give_up(fresh, "cannot be put in place");
    import_cache_expire();
    unlink(fresh); /* rename leaves it where both names already were one file */
    replace_used();
    usleep(500);
  }
  return nothing;
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS], replacer;
  if (argc < 5) give_up(argv[0], "expected ROUNDS CHANGING VERSION VERSION...");
  rounds = atol(argv[1]);
  paths = argv + 2;
  num_paths = argc - 2;
  embedder.find_import = find_import;
  current = new_used(NULL);
  pthread_create(&replacer, NULL, replace, NULL);
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  over = 1;
  pthread_join(replacer, NULL);
  printf("%d threads, %ld rounds each\n", THREADS, rounds);
  return 0;
}
