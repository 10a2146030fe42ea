/* Show the tree of each file of the command line, or why it is refused, as dso.h gives it. An
 * argument "@net1_" is the system library of that prefix.
 *
 *     FILE                         a line for each file, then
 *     error KIND: TEXT             or, for each module, depth first, each import of each module:
 *     module DEPTH TYPE_KEY        with its functions:
 *     function NAME
 *     signature SIGNATURE          if it is known; then, of the tree, its named tensors and entry
 *     weight NAME CODE.BITS.LANES (SHAPE) SUM
 *     entry NAME
 *
 * With "-c" before the files, each is closed only at the end, after all were loaded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dso.h"

static int show_function(void *context, const char *name, const char *signature) {
  (void)context;
  printf("function %s\n", name);
  if (signature && *signature) printf("signature %s\n", signature);
  return 0;
}

/* A sum of the bytes that depends on their order. */
static unsigned long sum(const unsigned char *bytes, size_t nbytes) {
  unsigned long hash = 5381;
  for (size_t i = 0; i < nbytes; i++) hash = (hash * 33 + bytes[i]) & 0xffffffff;
  return hash;
}

static int show_weight(void *context, const char *name, const DLTensor *tensor) {
  size_t nbytes = (size_t)(tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  (void)context;
  printf("weight %s %d.%d.%d (", name, tensor->dtype.code, tensor->dtype.bits, tensor->dtype.lanes);
  for (int32_t i = 0; i < tensor->ndim; i++) {
    printf("%s%lld", i ? "," : "", (long long)tensor->shape[i]);
    nbytes *= (size_t)tensor->shape[i];
  }
  printf(") %08lx\n", sum((const unsigned char *)tensor->data + tensor->byte_offset, nbytes));
  return 0;
}

static void show_modules(dso_module *module, int depth) {
  dso_module *const *imports;
  size_t count = dso_module_imports(module, &imports);
  printf("module %d %s\n", depth, dso_module_type_key(module));
  if (dso_module_functions(module, show_function, NULL) != 0) printf("! %s\n", dso_last_error());
  for (size_t i = 0; i < count && depth < 100; i++) show_modules(imports[i], depth + 1);
}

static dso_module *show(const char *path) {
  printf("%s\n", path);
  fflush(stdout);
  dso_module *module = path[0] == '@' ? dso_system_library(path + 1) : dso_load(path, NULL);
  if (module == NULL) {
    printf("error %s\n", dso_last_error());
    return NULL;
  }
  show_modules(module, 0);
  if (dso_module_weights(module, show_weight, NULL) != 0) printf("! %s\n", dso_last_error());
  printf("entry %s\n", dso_module_entry(module));
  return module;
}

int main(int count, char **paths) {
  int first = count > 1 && strcmp(paths[1], "-c") == 0 ? 2 : 1;
  dso_module **kept = (dso_module **)calloc((size_t)count, sizeof *kept);
  for (int i = first; i < count; i++) {
    dso_module *module = show(paths[i]);
    if (first == 2 && kept) kept[i] = module;
    else dso_module_release(module);
  }
  for (int i = first; kept && i < count; i++) dso_module_release(kept[i]);
  free(kept);
  return 0;
}
