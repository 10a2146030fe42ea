/* The blob of a library becomes its module tree. */
#include "module/tree.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "blob/blob.h"
#include "module/library.h"
#include "module/loaders.h"

static const char *const symbols[] = {"__tvm_dev_mblob", "__tvm_ffi__library_bin"};
static const enum dialect dialects[] = {DIALECT_TVM, DIALECT_TVM_FFI};

/* ---- Finding the blob */

/* Returns 1 with a reader at the start of the symbol, 0 if there is no blob, or -1. */
static int find_blob(const struct origin *origin, struct reader *reader) {
  int num_found = 0;
  for (size_t i = 0; i < 2; i++) {
    const uint8_t *bytes;
    size_t nbytes;
    int found = origin->type->data(origin, symbols[i], &bytes, &nbytes);
    if (found < 0) return -1;
    if (found == 0) continue;
    num_found++;
    *reader = (struct reader){.bytes = bytes,
                              .end = nbytes,
                              .path = origin->path,
                              .where = symbols[i],
                              .dialect = dialects[i]};
  }
  if (num_found < 2) return num_found;
  return raised_format("LibraryLoadError", "%s: both %s and %s, expected one of them", origin->path,
                       symbols[0], symbols[1]);
}

/* ---- Linking: the nodes are the blob's entries, without _import_tree */

struct nodes {
  dso_module **items; /* borrowed from the blob, or the library's own node */
  dso_module *library;
};

static int is_import_tree(struct span key) {
  static const char name[] = "_import_tree";
  return key.size == sizeof name - 1 && memcmp(key.data, name, key.size) == 0;
}

/* Complete each module, and list the nodes. */
static int make_nodes(struct blob *blob, struct nodes *nodes) {
  size_t count = 0;
  for (size_t i = 0; i < blob->num_entries; i++) {
    struct blob_entry *entry = &blob->entries[i];
    dso_module *module = entry->module != NULL ? module_of_object(entry->module) : NULL;
    if (is_import_tree(entry->key)) continue;
    if (module != NULL && module->type->to_node != NULL) {
      if (module->type->to_node(&module) != 0) return -1;
      entry->module = &module->object;
    }
    nodes->items[count++] = module != NULL ? module : nodes->library;
  }
  return 0;
}

static int link_import(void *context, size_t parent, size_t child) {
  const struct nodes *nodes = context;
  dso_module *from = nodes->items[parent];
  if (from->type->carries_imports && from != nodes->library) return 0;
  return module_append_import(from, nodes->items[child]);
}

/* Without a tree the library imports all. */
static int link_all(struct blob *blob, struct nodes *nodes) {
  if (blob->has_tree) return blob_visit_imports(blob, link_import, nodes);
  for (size_t i = 0; i < blob->num_entries; i++)
    if (module_append_import(nodes->library, nodes->items[i]) != 0) return -1;
  return 0;
}

/* Returns the root, owned, or NULL. */
static dso_module *link_tree(struct blob *blob, dso_module *library) {
  struct nodes nodes = {heap_new_zeroed(blob->num_entries + 1, sizeof *nodes.items), library};
  dso_module *root = NULL;
  if (nodes.items == NULL) (void)raised_format("OutOfMemoryError", "no memory for a module tree");
  else if (make_nodes(blob, &nodes) == 0 && link_all(blob, &nodes) == 0)
    root = blob->has_tree ? nodes.items[0] : library;
  if (root != NULL) module_retain(root);
  free(nodes.items);
  return root;
}

static dso_module *build(struct reader *reader, struct span manifest, dso_module *library,
                         const uint32_t *structure) {
  struct blob blob;
  dso_module *root = NULL;
  if (blob_skip_header(reader) != 0 || blob_parse(reader, &loaders, manifest, &blob) != 0)
    return NULL;
  if (structure == NULL || blob_check_structure(reader, &blob, *structure) == 0)
    root = link_tree(&blob, library);
  blob_clear(&blob);
  return root;
}

dso_module *tree_build(struct origin *origin, const uint32_t *structure) {
  struct reader reader;
  struct span manifest = {NULL, 0};
  const uint8_t *bytes;
  dso_module *library = library_module_new(origin);
  if (library == NULL) return NULL;
  int found = find_blob(origin, &reader);
  if (found == 0) return library;
  int has_manifest =
      found > 0 ? origin->type->data(origin, "__packer_manifest", &bytes, &manifest.size) : -1;
  if (has_manifest > 0) manifest.data = (const char *)bytes;
  reader.owner = &origin->object;
  dso_module *root = has_manifest >= 0 ? build(&reader, manifest, library, structure) : NULL;
  module_release(library);
  if (root != NULL && root->owner == NULL) {
    root->owner = &origin->object;
    object_retain(root->owner);
  }
  return root;
}
