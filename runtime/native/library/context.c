/* Contexts: creation, look-up by address, and the pointer variables of a library.
 *
 * Lifetime. A context belongs to an image in memory, which several open Libraries share if dlopen
 * gave them the same handle. num_libraries counts them: context_open and context_fill add one,
 * context_close removes one. The image's pointer variables contain the context's address and hold
 * no reference. The import cache owns a reference to each function object that the image's code
 * looked up. Code may store these objects in static variables, so they live until the image is
 * unmapped, or for ever if it never is.
 *
 * context->modules belongs to the embedder, which stores weak references to the modules that it
 * searches. When the last of these modules dies, the embedder drops its cached callables: they
 * reference modules that view the library, and would keep it open. A callable that a thread is
 * calling (in_call.h) is dropped after the call. A function object without its callable looks its
 * name up at each call.
 *
 * loaded_close calls context_free after dlclose unmapped the image. It has then released its lock,
 * because releasing a function object may close another library. The memory of a context is reused
 * for a later context and never returned to the heap, so any thread may search the contexts without
 * a lock. */
#include "library/context.h"

#include "abi/heap.h"
#include "abi/embedder.h"
#include "library/loaded.h"
#include "library/provided.h"

enum { NUM_BUCKETS = 64 };
enum { TYPE_OBJECT = 1 }; /* gABI, Symbol Table */

/* All contexts ever made, live and dead, by address. */
static struct context *contexts[NUM_BUCKETS];

/* ---- The list of contexts */

static struct context **bucket_of(const void *pointer) {
  return &contexts[(uintptr_t)pointer / 64 % NUM_BUCKETS];
}

struct context *context_of(const void *pointer) {
  struct context *context = __atomic_load_n(bucket_of(pointer), __ATOMIC_ACQUIRE);
  while (context != NULL && context != pointer) context = context->next;
  return context != NULL && __atomic_load_n(&context->is_live, __ATOMIC_ACQUIRE) ? context : NULL;
}

/* A compare-and-exchange claims a dead context: the caller that fills a system library does not
 * hold the lock of loaded.c. */
static struct context *claim_spare(void) {
  for (size_t i = 0; i < NUM_BUCKETS; i++) {
    struct context *context = __atomic_load_n(&contexts[i], __ATOMIC_ACQUIRE);
    for (; context != NULL; context = context->next) {
      int dead = 0;
      if (__atomic_compare_exchange_n(&context->is_live, &dead, 1, 0, __ATOMIC_ACQ_REL,
                                      __ATOMIC_RELAXED))
        return context;
    }
  }
  return NULL;
}

static struct context *make_context(void) {
  struct context *context = claim_spare();
  if (context != NULL) return context;
  context = heap_new_zeroed(1, sizeof *context);
  if (context == NULL) return NULL;
  context->is_live = 1;
  struct context **bucket = bucket_of(context);
  context->next = __atomic_load_n(bucket, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(bucket, &context->next, context, 0, __ATOMIC_RELEASE,
                                      __ATOMIC_ACQUIRE))
    continue;
  return context;
}

struct context *context_close(struct context *context, int is_mapped) {
  context->num_libraries--;
  return context->num_libraries == 0 && !is_mapped ? context : NULL;
}

void context_free(struct context *context) {
  embedder.forget_context(context);
  import_cache_clear(&context->import_cache);
  __atomic_store_n(&context->is_live, 0, __ATOMIC_RELEASE);
}

/* ---- The variables of a library */

/* Return the library's pointer variable of this name, or NULL. */
static void *variable_of(const void *where, const char *name) {
  const struct loaded *library = where;
  struct elf_symbol symbol;
  if (!loaded_symbol(library, name, &symbol) || symbol.type != TYPE_OBJECT ||
      symbol.size != sizeof(void *) || symbol.value % sizeof(void *) != 0 ||
      !elf_is_variable(&library->image, symbol.value, sizeof(void *)))
    return NULL;
  return (void *)(uintptr_t)(library->address + symbol.value);
}

static void fill_functions(find_variable find, const void *where) {
  for (size_t i = 0; i < NUM_PROVIDED; i++) {
    provided_function *variable = find(where, provided[i].variable);
    if (variable != NULL && *variable == NULL) *variable = provided[i].function;
  }
}

/* Return the context that a variable already holds, if the image was opened before. */
static struct context *context_in(void **const *variables, size_t count) {
  struct context *context = NULL;
  for (size_t i = 0; i < count && context == NULL; i++)
    if (variables[i] != NULL && *variables[i] != NULL) context = context_of(*variables[i]);
  return context;
}

struct context *context_fill(find_variable find, const void *where) {
  void **variables[] = {find(where, "__tvm_module_ctx"), find(where, "__tvm_ffi__library_ctx")};
  fill_functions(find, where);
  struct context *context = context_in(variables, 2);
  for (size_t i = 0; i < 2; i++) {
    if (variables[i] == NULL || *variables[i] != NULL) continue;
    if (context == NULL) context = make_context();
    *variables[i] = context;
  }
  if (context != NULL) context->num_libraries++;
  return context;
}

int context_is_unset(const struct loaded *library) {
  void **ffi = variable_of(library, "__tvm_ffi__library_ctx");
  void **packed = variable_of(library, "__tvm_module_ctx");
  return (ffi != NULL && *ffi == NULL) || (packed != NULL && *packed == NULL);
}

struct context *context_open(const struct loaded *library) {
  return context_fill(variable_of, library);
}
