/* The modules of contexts, and the search in their imports. */
#include "module/embedder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/embedder.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "library/context.h"
#include "module/global.h"
#include "module/embedder_lock.h"
#include "module/imported.h"
#include "module/not_found.h"
#include "module/origin.h"
#include "module/weights.h"

/* ---- The modules of a context, in the order of binding. The references are weak: a module removes
 * itself when it ends. */

struct bound {
  struct bound *next;
  dso_module *module;
};

static int no_memory(void) { return raised_format("OutOfMemoryError", "no memory for a look-up"); }

int embedder_bind(struct context *context, dso_module *module) {
  struct bound *added = heap_new(sizeof *added);
  if (added == NULL) return no_memory();
  *added = (struct bound){NULL, module};
  embedder_lock();
  struct bound **link = (struct bound **)(void *)&context->modules;
  while (*link != NULL) link = &(*link)->next;
  *link = added;
  embedder_unlock();
  return 0;
}

static void retire(dso_object *shell, const char *name, void *list) {
  (void)name;
  imported_retire(shell, list);
}

/* When the last module ends, the context drops the functions that it cached: their modules may view
 * the library, and would keep it open. Only threads that the library started can still call its
 * code. */
void embedder_unbind(struct context *context, dso_module *module) {
  struct imported *retired = NULL;
  embedder_lock();
  struct bound **link = (struct bound **)(void *)&context->modules;
  while (*link != NULL && (*link)->module != module) link = &(*link)->next;
  struct bound *gone = *link;
  if (gone != NULL) *link = gone->next;
  if (gone != NULL && context->modules == NULL)
    import_cache_retire(&context->import_cache, retire, &retired);
  embedder_unlock();
  free(gone);
  imported_drop_all(retired);
}

static void forget_context(struct context *context) {
  struct bound *bound = context->modules;
  context->modules = NULL;
  while (bound != NULL) {
    struct bound *next = bound->next;
    free(bound);
    bound = next;
  }
}

/* ---- The search. It holds references to the modules, not the lock: types of the program may be
 * searched. */

struct search {
  struct context *context;
  const char *name;
  size_t num_modules;
  dso_module **modules;
  const dso_module *root;          /* the module whose imports are searched */
  dso_object *function, *provider; /* the function is owned */
};

static size_t count_modules(const struct context *context) {
  size_t count = 0;
  for (const struct bound *at = context->modules; at != NULL; at = at->next) count++;
  return count;
}

/* Take references to the live modules. The list may grow while memory is allocated. */
static int take_modules(struct search *self) {
  const struct bound *first = NULL;
  size_t room = 4;
  for (;; room *= 2) {
    self->modules = heap_new(room * sizeof(dso_module *));
    if (self->modules == NULL) return no_memory();
    embedder_lock();
    if (count_modules(self->context) <= room) break;
    embedder_unlock();
    free(self->modules);
  }
  first = self->context->modules;
  for (; first != NULL; first = first->next)
    if (module_try_retain(first->module)) self->modules[self->num_modules++] = first->module;
  embedder_unlock();
  return 0;
}

static void release_modules(const struct search *self) {
  for (size_t i = 0; i < self->num_modules; i++) module_release(self->modules[i]);
  free(self->modules);
}

static int find_in(void *context, dso_module *module) {
  struct search *self = context;
  dso_function *function;
  if (module == self->root) return 0;
  int status = module_find_own(module, self->name, &function);
  if (status <= 0) return status;
  self->function = &function->object;
  self->provider = &module->object;
  return 1;
}

static int search_all(struct search *self) {
  dso_function *function;
  int status = 0;
  for (size_t i = 0; i < self->num_modules && status == 0; i++) {
    self->root = self->modules[i];
    status = module_visit(self->modules[i], find_in, self);
  }
  if (status != 0 || global_find(self->name, &function) == 0) return status;
  self->function = self->provider = &function->object;
  return 1;
}

/* "<LibraryModule 'path'>: its host code" */
static void add_who(struct text *to, const struct search *search) {
  if (search->num_modules > 0) {
    const char *path = module_where(search->modules[0]);
    text_format(to, "<LibraryModule ");
    text_repr(to, path, strlen(path));
    text_format(to, ">: its host code");
  } else {
    text_format(to, "a library without a module: its host code");
  }
}

struct missing {
  struct not_found found;
  const dso_module *root;
};

static int see_import(void *context, dso_module *module) {
  struct missing *self = context;
  return module != self->root ? not_found_see(&self->found, module) : 0;
}

static void raise_missing(const struct search *search) {
  struct missing missing = {.found = {.name = search->name}};
  int status = 0;
  for (size_t i = 0; i < search->num_modules && status == 0; i++) {
    missing.root = search->modules[i];
    status = module_visit(search->modules[i], see_import, &missing);
  }
  if (status == 0) status = global_names(&missing.found.names);
  if (status == 0) status = built_in_add_names(&missing.found.also);
  struct text text = {0};
  text_check(&text, status);
  add_who(&text, search);
  text_format(&text,
              " calls '%s', which is neither a function of its imports nor a global function",
              search->name);
  not_found_add(&missing.found, &text);
  not_found_clear(&missing.found);
  (void)text_raise(&text, "FunctionNotFoundError");
}

/* The cached shell of the function; a new one only if its provider is new. */
static dso_object *cache(const struct search *self, uint64_t version) {
  struct import_cache *table = &self->context->import_cache;
  dso_object *shell = imported_new(self->context, self->name, self->function, self->provider);
  if (shell == NULL) return NULL;
  embedder_lock();
  dso_object *known = import_cache_renew(table, self->name, self->provider, version);
  int is_added = 0;
  if (known == NULL) {
    object_retain(shell); /* import_cache_add would release it under the lock */
    is_added = import_cache_add(table, self->name, self->provider, version, shell) == 0;
    known = shell;
  }
  embedder_unlock();
  object_release(shell);
  if (known != shell || is_added) return known;
  (void)no_memory();
  return NULL;
}

static void *find_import(struct context *context, const char *name) {
  struct search search = {.context = context, .name = name};
  uint64_t version = import_cache_version(); /* read first: trees may change during the search */
  int status = take_modules(&search);
  if (status == 0) {
    status = search_all(&search);
    if (status == 0) raise_missing(&search);
  }
  dso_object *shell = status > 0 ? cache(&search, version) : NULL;
  if (search.function != NULL) object_release(search.function);
  release_modules(&search);
  return shell;
}

/* ---- Weights */

static void raise_no_weight(const struct search *search) {
  struct names names = {.count = 0};
  int status = 0;
  for (size_t i = 0; i < search->num_modules && status == 0; i++)
    status = module_weight_names(search->modules[i], &names);
  struct text text = {0};
  text_check(&text, status);
  add_who(&text, search);
  text_format(&text, " reads weight '%s', which no module of its tree has", search->name);
  names_add_near(&text, &names, NULL, search->name);
  names_clear(&names);
  (void)text_raise(&text, "KeyError");
}

static int find_weight(struct context *context, const char *name, DLTensor *tensor) {
  struct search search = {.context = context, .name = name};
  int status = take_modules(&search), found = 0;
  for (size_t i = 0; i < search.num_modules && status == 0 && found == 0; i++)
    found = module_weight(search.modules[i], name, tensor);
  if (status == 0 && found == 0) raise_no_weight(&search);
  release_modules(&search);
  return found > 0 ? 0 : -1;
}

/* ---- Global functions */

static void *find_global(const char *name) {
  dso_function *function;
  if (global_find(name, &function)) return function;
  return raised_null("FunctionNotFoundError",
                     "no global function '%s' is registered; use dso_register_function", name);
}

/* ---- The table */

static void fill(void) {
  embedder.find_import = find_import;
  embedder.find_weight = find_weight;
  embedder.find_global = find_global;
  embedder.forget_context = forget_context;
}

void embedder_install(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, fill);
}

void embedder_collect(void) { imported_collect(); }
