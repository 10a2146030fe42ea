/* shared_library: a whole shared library in a blob (runtime/modules/shared_library.py).
 *
 * bytes file    the library's file, verbatim
 *
 * Its imports are in the file. Parsing a blob does not load it; building the tree does, and runs its
 * code. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/library.h"
#include "module/tree.h"
#include "types/families.h"

/* A carried library may carry libraries. This bounds the recursion of a load. */
enum { MAX_NESTING = 8 };
static _Thread_local int depth;

struct carried {
  dso_module module;
  struct span file;
  char *where;
};

static int refuse(const struct carried *self, const char *what) {
  return raised_format("BlobFormatError", "%s: %s", self->where, what);
}

/* ---- The loaded library in its place */

struct search {
  struct origin *origin;
  dso_module *found;
};

static int find_host_code(void *context, dso_module *module) {
  struct search *self = context;
  if (!is_library_module(module) || origin_of(module) != self->origin) return 0;
  self->found = module;
  return 1;
}

/* An error of the load names this place first. */
static void add_place(const struct carried *self, uint64_t before) {
  char *kind;
  const char *message;
  if (raised_at() == before || raised_take(0, &kind, &message) == 0) return;
  if (strcmp(kind, "LibraryLoadError") == 0)
    (void)raised_format(kind, "%s: %s", self->where, message);
  else raised_set(kind, message);
  raised_free(kind);
}

static int load_file(dso_module **module) {
  struct carried *self = (struct carried *)(void *)*module;
  const struct origin *outer = origin_of(*module);
  uint64_t before = raised_at();
  struct load_options options = {.verify = NULL};
  if (outer != NULL) options = outer->options;
  options.is_part = 1;
  dso_module *root = tree_load_bytes(self->file.data, self->file.size, &options);
  if (root == NULL) return add_place(self, before), -1;
  struct search search = {origin_of(root), NULL};
  int status = module_visit(root, find_host_code, &search);
  if (search.found == NULL) {
    if (status == 0) (void)refuse(self, "a library without host code, expected some");
    module_release(root);
    return -1;
  }
  module_retain(search.found);
  module_release(root);
  module_release(*module);
  *module = search.found;
  return 0;
}

static int to_node(dso_module **module) {
  if (depth == MAX_NESTING) {
    char what[64];
    snprintf(what, sizeof what, "libraries nested deeper than %d", MAX_NESTING);
    return refuse((struct carried *)(void *)*module, what);
  }
  depth++;
  int status = load_file(module);
  depth--;
  return status;
}

static void end(dso_module *module) { free(((struct carried *)(void *)module)->where); }

static const struct module_type type = {.to_node = to_node, .end = end, .carries_imports = 1};

/* ---- The payload */

int load_shared_library(struct reader *reader, struct span type_key, dso_module **module) {
  size_t at = reader->offset;
  struct span file;
  if (reader_bytes(reader, &file) != 0) return -1;
  struct carried *self = module_new(&type, type_key, sizeof *self, reader->owner);
  if (self == NULL) return -1;
  self->file = file;
  self->where = heap_format("%s%s%s at 0x%zx", reader->path != NULL ? reader->path : "",
                            reader->path != NULL ? ": " : "", reader->where, at);
  if (self->where == NULL) {
    module_release(&self->module);
    return raised_format("OutOfMemoryError", "no memory for a module");
  }
  *module = &self->module;
  return 0;
}
