/* Models that were linked into the program as the origin of modules: their registered symbols. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "library/checksums.h"
#include "library/context.h"
#include "library/registered.h"
#include "module/embedder.h"
#include "module/embedder_lock.h"
#include "module/tree.h"

struct system_origin {
  struct origin origin;
  char *prefix;
};

static const char *prefix_of(const struct origin *self) {
  return ((const struct system_origin *)(const void *)self)->prefix;
}

/* ---- Data */

static int data(const struct origin *self, const char *name, const uint8_t **bytes,
                size_t *nbytes) {
  struct registered_symbol symbol = registered_find_in("", prefix_of(self), name);
  if (symbol.address == NULL) return 0;
  const char *wrong = registered_data(name, &symbol, nbytes);
  *bytes = symbol.address;
  if (wrong == NULL) return 1;
  return raised_format("LibraryLoadError", "%s: %s %s", self->path, name, wrong);
}

/* ---- Functions */

static int function(const struct origin *self, const char *name, struct found_function *found,
                    struct load_error *error) {
  return registered_function(prefix_of(self), name, found, error);
}

/* ---- Names */

struct listing {
  int (*visit)(void *arg, const char *symbol);
  void *arg;
};

static int list_name(const char *start, const char *name, void *arg) {
  const struct listing *self = arg;
  char *text = heap_format("%s%s", start, name);
  if (text == NULL) return raised_format("OutOfMemoryError", "no memory for a name");
  int status = self->visit(self->arg, text);
  free(text);
  return status;
}

static int visit_symbols(const struct origin *self, const char *start,
                         int (*visit)(void *arg, const char *symbol), void *arg) {
  struct listing listing = {visit, arg};
  return registered_visit_in(start, prefix_of(self), list_name, &listing);
}

static int is_any(void *arg, const char *symbol) {
  (void)arg, (void)symbol;
  return 1;
}

static char *hint(const struct origin *self, const char *name) {
  (void)name;
  if (visit_symbols(self, "", is_any, NULL) != 0) return NULL;
  return heap_copy_text("; nothing is registered under this prefix; link or load what `packer "
                        "export --system-lib` made with it");
}

/* ---- The origin. Its context is never freed, because the code that uses it is never unmapped. */

static void close_system(struct origin *self) {
  free(((struct system_origin *)(void *)self)->prefix);
}

static const struct origin_type type = {
    .data = data,
    .function = function,
    .visit_symbols = visit_symbols,
    .hint = hint,
    .close = close_system,
};

static int verify(const struct system_origin *self, struct checksums *checksums) {
  struct load_error error;
  char *symbol = heap_format("%s__packer_checksums", self->prefix);
  if (symbol == NULL) return raised_format("OutOfMemoryError", "no memory for a name");
  int status = checksums_verify(symbol, registered_listed, self, checksums, &error);
  if (status != 0)
    (void)raised_format(load_error_kind(&error), "%s: %s", self->origin.path, error.message);
  free(symbol);
  return status;
}

static struct system_origin *new_origin(const char *prefix) {
  static const struct load_options none = {.verify = NULL};
  struct text path = {0};
  text_format(&path, "system library ");
  text_repr(&path, prefix, strlen(prefix));
  struct system_origin *self = origin_new(sizeof *self, text_of(&path), &none);
  text_free(&path);
  if (self == NULL) return NULL;
  self->prefix = heap_copy_text(prefix);
  if (self->prefix != NULL) {
    self->origin.type = &type;
    return self;
  }
  object_release(&self->origin.object);
  return raised_null("OutOfMemoryError", "no memory for a system library");
}

/* ---- The roots, one per prefix with registered symbols, kept for ever */

struct root {
  struct root *next;
  dso_module *module;
  char prefix[];
};

static struct root *roots;

static dso_module *known_root(const char *prefix) {
  const struct root *at = __atomic_load_n(&roots, __ATOMIC_ACQUIRE);
  while (at != NULL && strcmp(at->prefix, prefix) != 0) at = at->next;
  if (at != NULL) module_retain(at->module);
  return at != NULL ? at->module : NULL;
}

/* Takes over the caller's reference; returns an owned root, which may be that of another thread. */
static dso_module *keep_root(const char *prefix, dso_module *module) {
  size_t size = strlen(prefix) + 1;
  struct root *added = heap_new(sizeof *added + size);
  if (added == NULL) {
    module_release(module);
    return raised_null("OutOfMemoryError", "no memory for a system library");
  }
  memcpy(added->prefix, prefix, size);
  added->module = module;
  embedder_lock();
  dso_module *known = known_root(prefix);
  if (known == NULL) {
    added->next = roots;
    module_retain(module);
    __atomic_store_n(&roots, added, __ATOMIC_RELEASE);
  }
  embedder_unlock();
  if (known == NULL) return module;
  free(added);
  module_release(module);
  return known;
}

dso_module *tree_of_program(const char *prefix) {
  struct checksums checksums = {.has_blob = 0};
  embedder_install();
  dso_module *root = known_root(prefix);
  if (root != NULL) return root;
  struct system_origin *self = new_origin(prefix);
  if (self == NULL) return NULL;
  if (verify(self, &checksums) == 0) {
    self->origin.context = context_fill(registered_variable, self->prefix);
    root = tree_build(&self->origin, checksums.has_blob ? &checksums.structure : NULL);
  }
  int is_empty = visit_symbols(&self->origin, "", is_any, NULL) == 0;
  object_release(&self->origin.object);
  return root != NULL && !is_empty ? keep_root(prefix, root) : root;
}
