/* Passing constants to host code, at the first look-up of a function that needs them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/embedder.h"
#include "abi/raised.h"
#include "types/const/const_loader.h"
#include "module/library.h"
#include "vm/builtin.h"

/* A const_loader may pass constants to functions named __init_..., which need others. */
enum { MOST_NESTED = 64 };

static _Thread_local int num_nested;

/* ---- Searching the imports. A const_loader among them passes its constants, and its imports are
 * searched instead. */

struct search {
  const struct const_loader *root;
  const char *name;
  dso_function *function;
  dso_module *holder; /* of the function; borrowed from the tree */
};

static int hand_over(struct const_loader *self, const char *name);

static int search_module(void *context, dso_module *module) {
  struct search *search = context;
  if (module == &search->root->module) return 0;
  if (module->type == &const_loader_type)
    return hand_over((struct const_loader *)module, search->name);
  int status = module_find_own(module, search->name, &search->function);
  if (status > 0) search->holder = module;
  return status == 0 ? MODULE_VISIT_LEAF : status;
}

static int find_in_imports(struct const_loader *self, const char *name, struct search *search) {
  *search = (struct search){.root = self, .name = name};
  return module_visit(&self->module, search_module, search);
}

/* ---- The call */

/* Code that TVM compiled takes the constants as one Array: a function of host code, in its dialect,
 * without a declared type. Returns 1, 0, or -1 with the error raised. */
static int takes_array(const struct const_loader *self, const struct search *search) {
  const struct host_function *function;
  if (self->dialect != DIALECT_TVM_FFI || !is_library_module(search->holder)) return 0;
  int status = origin_function(origin_of(search->holder), search->name, &function);
  return status > 0 ? function->found.facts.type == NULL : status;
}

static dso_tensor_object *constant_of(struct const_loader *self, struct span name) {
  return const_loader_use(self, const_loader_place(self, name.data, name.size));
}

static int call_with_array(struct const_loader *self, const struct const_symbol *symbol,
                           dso_function *function, dso_any *result) {
  dso_array_object *array = array_object_new((int64_t)symbol->num_constants);
  int status = array != NULL ? 0 : -1;
  for (size_t i = 0; i < symbol->num_constants && status == 0; i++) {
    dso_tensor_object *tensor = constant_of(self, symbol->constants[i]);
    status = tensor != NULL ? 0 : -1;
    if (tensor != NULL) array->items[i] = any_of_object(tensor);
    any_retain(&array->items[i]);
  }
  if (status == 0) {
    dso_any argument = any_of_object(array);
    status = dso_call_function(&function->object, result, &argument, 1);
  }
  if (array != NULL) object_release(&array->object);
  return status;
}

static int call_with_each(struct const_loader *self, const struct const_symbol *symbol,
                          dso_function *function, dso_any *result) {
  size_t count = symbol->num_constants;
  dso_any *args = count <= INT32_MAX ? heap_new_zeroed(count + 1, sizeof *args) : NULL;
  if (args == NULL) return raised_format("OutOfMemoryError", "no memory for %zu arguments", count);
  int status = 0;
  for (size_t i = 0; i < count && status == 0; i++) {
    dso_tensor_object *tensor = constant_of(self, symbol->constants[i]);
    status = tensor != NULL ? 0 : -1;
    if (tensor != NULL) args[i] = dso_tensor(&tensor->tensor);
  }
  if (status == 0) status = dso_call_function(&function->object, result, args, (int32_t)count);
  free(args);
  return status;
}

static int refuse_result(const char *name, const dso_any *result) {
  if (result->type_index == DSO_INT)
    return raised_format("PackerError", "const_loader: %s returned %" PRId64 ", expected 0", name,
                         result->v_int64);
  return raised_format("PackerError", "const_loader: %s returned %s, expected 0", name,
                       vm_type_name(result));
}

static int is_success(const dso_any *result) {
  switch (result->type_index) {
    case DSO_NONE: return 1;
    case DSO_INT:
    case DSO_BOOL: return result->v_int64 == 0;
    case DSO_FLOAT: return result->v_float64 == 0;
    default: return 0;
  }
}

static int call(struct const_loader *self, const struct const_symbol *symbol,
                const struct search *search) {
  dso_any result = dso_none();
  int is_array = takes_array(self, search);
  if (is_array < 0) return -1;
  int status = is_array ? call_with_array(self, symbol, search->function, &result)
                        : call_with_each(self, symbol, search->function, &result);
  if (status == 0 && !is_success(&result)) status = refuse_result(search->name, &result);
  dso_release(&result);
  return status != 0 ? -1 : 0;
}

/* ---- Once for each symbol */

static int initialize(struct const_loader *self, struct const_symbol *symbol, const char *name) {
  struct search search;
  char *init = heap_format("__init_%s", name);
  if (init == NULL) return raised_format("OutOfMemoryError", "no memory for a name");
  int status = find_in_imports(self, init, &search);
  if (status > 0) {
    symbol->is_running = 1;
    status = call(self, symbol, &search);
    symbol->is_running = 0;
    object_release(&search.function->object);
    if (status == 0) atomic_store(&symbol->is_initialized, 1);
  }
  free(init);
  return status;
}

/* A thread that waits releases the embedder's lock: the owner may be waiting for it. */
static void lock(struct const_loader *self) {
  if (pthread_mutex_trylock(&self->lock) == 0) return;
  void *state = embedder.suspend();
  pthread_mutex_lock(&self->lock);
  if (state != NULL) embedder.resume(state);
}

/* Pass its constants to a function. Returns 0, or -1 with the error raised. */
static int hand_over(struct const_loader *self, const char *name) {
  size_t place = name_order_find(&self->symbol_order, name, strlen(name));
  struct const_symbol *symbol = place != NO_NAME ? &self->symbols[place] : NULL;
  int status = 0;
  if (symbol == NULL || atomic_load(&symbol->is_initialized)) return 0;
  if (num_nested == MOST_NESTED)
    return raised_format("RecursionError",
                         "const_loader: %.200s: initialisations are nested too deeply, expected "
                         "at most %d",
                         name, MOST_NESTED);
  num_nested++;
  lock(self);
  if (!atomic_load(&symbol->is_initialized) && !symbol->is_running)
    status = initialize(self, symbol, name);
  pthread_mutex_unlock(&self->lock);
  num_nested--;
  return status < 0 ? -1 : 0;
}

int const_loader_find(struct const_loader *self, const char *name, dso_function **function) {
  struct search search;
  if (hand_over(self, name) != 0) return -1;
  int status = find_in_imports(self, name, &search);
  if (status > 0) *function = search.function;
  return status;
}
