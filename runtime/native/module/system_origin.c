/* Models that were linked into the program as the origin of modules: their registered symbols. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "elf/layout.h"
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

/* Find the symbol <start><prefix><name>. `address` is NULL if it is absent. */
static struct registered_symbol find(const char *start, const char *prefix, const char *name) {
  struct registered_symbol symbol = {.address = NULL};
  char *text = heap_format("%s%s%s", start, prefix, name);
  if (text != NULL) symbol = registered_find(text);
  free(text);
  return symbol;
}

/* ---- Data */

static int data(const struct origin *self, const char *name, const uint8_t **bytes,
                size_t *nbytes) {
  struct registered_symbol symbol = find("", prefix_of(self), name);
  if (symbol.address == NULL) return 0;
  const char *wrong = registered_data(name, &symbol, nbytes);
  *bytes = symbol.address;
  if (wrong == NULL) return 1;
  return raised_format("LibraryLoadError", "%s: %s %s", self->path, name, wrong);
}

/* ---- Functions */

/* Find a safe call, else a packed C function, under one prefix. Names that begin with "__" are data
 * of the models. */
static int find_function(const struct origin *self, const char *prefix, const char *name,
                         struct host_function **found) {
  struct registered_symbol code = find("__tvm_ffi_", prefix, name);
  struct registered_symbol facts = find("__packer_fn_", prefix, name);
  int is_packed = code.address == NULL;
  size_t nbytes = 0;
  if (is_packed && strncmp(name, "__", 2) != 0) code = find("", prefix, name);
  if (code.address == NULL || !(code.flags & PF_X)) return 0;
  const char *wrong = facts.address != NULL ? registered_text(&facts, &nbytes) : NULL;
  if (wrong != NULL)
    return raised_format("LibraryLoadError", "%s: __packer_fn_%s: %s", self->path, name, wrong);
  *found = host_function_new(self, name, facts.address, nbytes);
  if (*found == NULL) return -1;
  (*found)->code = code.address;
  (*found)->is_packed = is_packed;
  return 1;
}

static int function(const struct origin *self, const char *name, struct host_function **found) {
  int status = find_function(self, prefix_of(self), name, found);
  return status == 0 ? find_function(self, "", name, found) : status;
}

/* ---- Names */

struct listing {
  const char *start, *prefix;
  int (*visit)(void *arg, const char *symbol);
  void *arg;
};

/* Visit <start><name> for each symbol <start><prefix><name>. */
static int list_name(const char *symbol, void *arg) {
  const struct listing *self = arg;
  size_t start = strlen(self->start), prefix = strlen(self->prefix);
  if (strncmp(symbol, self->start, start) != 0 ||
      strncmp(symbol + start, self->prefix, prefix) != 0)
    return 0;
  char *name = heap_format("%s%s", self->start, symbol + start + prefix);
  if (name == NULL) return raised_format("OutOfMemoryError", "no memory for a name");
  int status = self->visit(self->arg, name);
  free(name);
  return status;
}

static int visit_symbols(const struct origin *self, const char *start,
                         int (*visit)(void *arg, const char *symbol), void *arg) {
  struct listing listing = {start, prefix_of(self), visit, arg};
  return registered_visit(list_name, &listing);
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

static void *variable_of(const void *prefix, const char *name) {
  struct registered_symbol symbol = find("", prefix, name);
  int is_variable = symbol.address != NULL && (symbol.flags & PF_W) != 0 &&
                    symbol.nbytes >= sizeof(void *) &&
                    (uintptr_t)symbol.address % sizeof(void *) == 0;
  return is_variable ? (void *)(uintptr_t)symbol.address : NULL;
}

/* The names in the list of checksums include the prefix. */
static int find_listed(const void *library, const char *name, int is_code, const uint8_t **bytes,
                       size_t *nbytes) {
  struct registered_symbol symbol = registered_find(name);
  (void)library;
  if (symbol.address == NULL) return 0;
  if (is_code) return (symbol.flags & PF_X) != 0;
  *bytes = symbol.address;
  return registered_text(&symbol, nbytes) == NULL;
}

static int verify(const struct system_origin *self, struct checksums *checksums) {
  struct load_error error;
  char *symbol = heap_format("%s__packer_checksums", self->prefix);
  if (symbol == NULL) return raised_format("OutOfMemoryError", "no memory for a name");
  int status = checksums_verify(symbol, find_listed, self, checksums, &error);
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
    self->origin.context = context_fill(variable_of, self->prefix);
    root = tree_build(&self->origin, checksums.has_blob ? &checksums.structure : NULL);
  }
  int is_empty = visit_symbols(&self->origin, "", is_any, NULL) == 0;
  object_release(&self->origin.object);
  return root != NULL && !is_empty ? keep_root(prefix, root) : root;
}
