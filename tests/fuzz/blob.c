/* Blobs of both dialects, as the tree that a load makes of them: entries, payloads of all types,
 * import tree, manifest, names, tensors, look-up. Host code and kernels do not run.
 *
 * The input is a blob without its nbytes header; after the bytes MANIFEST, a manifest may follow. For
 * some inputs an allocation fails. */
#define _GNU_SOURCE /* memmem */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/object.h"
#include "abi/raised.h"
#include "module/embedder.h"
#include "module/tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static const char mark[] = "MANIFEST";
static volatile uint64_t sum; /* what is read is used */

/* The library that holds the blob. */
struct library {
  struct origin origin;
  const char *symbol;
  uint8_t *blob; /* with its nbytes header */
  const uint8_t *manifest;
  size_t blob_nbytes, manifest_nbytes;
};

static int find_data(const struct origin *self, const char *symbol, const uint8_t **bytes,
                     size_t *nbytes) {
  const struct library *library = (const struct library *)(const void *)self;
  if (strcmp(symbol, library->symbol) == 0) {
    *bytes = library->blob;
    *nbytes = library->blob_nbytes;
    return 1;
  }
  *bytes = library->manifest;
  *nbytes = library->manifest_nbytes;
  return library->manifest != NULL && strcmp(symbol, "__packer_manifest") == 0;
}

static int find_function(const struct origin *self, const char *name,
                         struct host_function **found) {
  (void)self, (void)name, (void)found;
  return 0;
}

static int visit_symbols(const struct origin *self, const char *start,
                         int (*visit)(void *arg, const char *symbol), void *arg) {
  (void)self, (void)start, (void)visit, (void)arg;
  return 0;
}

static char *hint(const struct origin *self, const char *name) {
  (void)self, (void)name;
  return NULL;
}

static void end_library(struct origin *self) { free(((struct library *)(void *)self)->blob); }

static const struct origin_type type = {
    .data = find_data,
    .function = find_function,
    .visit_symbols = visit_symbols,
    .hint = hint,
    .close = end_library,
};

/* ---- Reading the tree */

static int read_function(void *context, const char *name, const char *signature) {
  dso_function *function = NULL;
  (void)context;
  sum += strlen(name) + (signature != NULL ? strlen(signature) : 0);
  if (module_find(context, name, &function) > 0) dso_function_release(function);
  return 0;
}

static int read_weight(void *context, const char *name, const DLTensor *tensor) {
  size_t nbytes = (size_t)(tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  (void)context;
  sum += strlen(name);
  for (int i = 0; i < tensor->ndim; i++) nbytes *= (size_t)tensor->shape[i];
  if (tensor->data == NULL) return 0; /* incomplete: the blob has too little of it */
  for (size_t i = 0; i < nbytes; i++)
    sum += ((const uint8_t *)tensor->data)[tensor->byte_offset + i];
  return 0;
}

static int read_module(void *context, dso_module *module) {
  const struct module_type *of = module->type;
  (void)context;
  sum += strlen(module->type_key);
  if (of->visit_functions != NULL) (void)of->visit_functions(module, read_function, module);
  if (of->visit_weights != NULL) (void)of->visit_weights(module, read_weight, NULL);
  if (of->entry != NULL && of->entry(module) != NULL) sum += strlen(of->entry(module));
  return 0;
}

static void read_tree(dso_module *root) {
  dso_function *function = NULL;
  (void)module_visit(root, read_module, NULL);
  if (module_find(root, "main", &function) > 0) dso_function_release(function);
  else (void)module_not_found(root, "main");
}

/* ---- Inputs */

static void load(const char *symbol, const uint8_t *data, size_t nbytes, const uint8_t *manifest,
                 size_t manifest_nbytes) {
  const struct load_options options = {0};
  struct library *library = origin_new(sizeof *library, "fuzz.so", &options);
  if (library == NULL) return;
  library->origin.type = &type;
  library->symbol = symbol;
  library->blob_nbytes = nbytes + sizeof(uint64_t);
  library->blob = malloc(library->blob_nbytes); /* its end is the end of a block */
  memcpy(library->blob, &(uint64_t){nbytes}, sizeof(uint64_t));
  if (nbytes > 0) memcpy(library->blob + sizeof(uint64_t), data, nbytes);
  library->manifest = manifest;
  library->manifest_nbytes = manifest_nbytes;
  dso_module *root = tree_build(&library->origin, NULL);
  const char *kind, *message;
  if (root != NULL) read_tree(root);
  else if (!raised_look(&kind, &message) || message[0] == '\0') abort();
  module_release(root);
  object_release(&library->origin.object);
  raised_forget();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  const uint8_t *found = nbytes > 0 ? memmem(data, nbytes, mark, sizeof mark - 1) : NULL;
  size_t blob_nbytes = found != NULL ? (size_t)(found - data) : nbytes;
  size_t start = blob_nbytes + sizeof mark - 1;
  uint64_t seed = nbytes;
  for (size_t i = 0; i < nbytes; i++) seed = seed * 1099511628211u ^ data[i];
  embedder_install();
  for (int i = 0; i < 2; i++) {
    if (seed % 8 == 0) (void)heap_fail_at(1 + (long)(seed >> 32) % 60);
    load(i == 0 ? "__tvm_dev_mblob" : "__tvm_ffi__library_bin", data, blob_nbytes,
         found != NULL ? data + start : NULL, found != NULL ? nbytes - start : 0);
    (void)heap_fail_at(0);
  }
  return 0;
}
