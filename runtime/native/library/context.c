#include "library/context.h"

#include "abi/heap.h"
#include "abi/host.h"
#include "library/loaded.h"
#include "library/provided.h"

enum { NUM_BUCKETS = 64 };
enum { TYPE_OBJECT = 1 }; /* gABI, Symbol Table */

/* All contexts that ever were, by address: the memory is used again, but never given back, so
 * that going over them needs no lock. */
static struct context *contexts[NUM_BUCKETS];

/* ---- The live contexts */

static struct context **bucket_of(const void *pointer) {
  return &contexts[(uintptr_t)pointer / 64 % NUM_BUCKETS];
}

struct context *context_of(const void *pointer) {
  struct context *context = __atomic_load_n(bucket_of(pointer), __ATOMIC_ACQUIRE);
  while (context != NULL && context != pointer) context = context->next;
  return context != NULL && __atomic_load_n(&context->is_live, __ATOMIC_ACQUIRE) ? context : NULL;
}

/* Claimed by an exchange: whoever fills a system library does not hold the lock of loaded.c. */
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
  host.forget_context(context);
  import_cache_clear(&context->import_cache);
  __atomic_store_n(&context->is_live, 0, __ATOMIC_RELEASE);
}

/* ---- The variables of a library */

/* The pointer variable of this name that the library defines, or NULL. */
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
  for (size_t i = 0; i < num_provided; i++) {
    provided_function *variable = find(where, provided[i].variable);
    if (variable != NULL && *variable == NULL) *variable = provided[i].function;
  }
}

/* A variable that has a context of ours: the image has been open before, or still is. */
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

struct context *context_open(const struct loaded *library) {
  return context_fill(variable_of, library);
}
