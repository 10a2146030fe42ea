/* Show the tree of each file of the command line, or why it is refused, as dso.h gives it.
 *
 *     FILE                         a line for each file, then
 *     error KIND: TEXT             or, for each module, depth first, each import of each module:
 *     module DEPTH TYPE_KEY        with its functions and named tensors:
 *     function NAME SIGNATURE
 *     weight NAME CODE.BITS.LANES SHAPE SUM
 *     entry NAME                   of the tree */
#include <stdio.h>
#include <string.h>

#include "dso.h"

static int show_function(void *context, const char *name, const char *signature) {
  (void)context;
  printf("function %s %s\n", name, signature ? signature : "?");
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

static void show(dso_module *module, int depth) {
  dso_module *const *imports;
  size_t count = dso_module_imports(module, &imports);
  printf("module %d %s\n", depth, dso_module_type_key(module));
  if (dso_module_functions(module, show_function, NULL) != 0) printf("! %s\n", dso_last_error());
  for (size_t i = 0; i < count && depth < 100; i++) show(imports[i], depth + 1);
}

int main(int count, char **paths) {
  for (int i = 1; i < count; i++) {
    printf("%s\n", paths[i]);
    fflush(stdout);
    dso_module *module = dso_load(paths[i], NULL);
    if (module == NULL) {
      printf("error %s\n", dso_last_error());
      continue;
    }
    show(module, 0);
    if (dso_module_weights(module, show_weight, NULL) != 0) printf("! %s\n", dso_last_error());
    printf("entry %s\n", dso_module_entry(module));
    dso_module_release(module);
  }
  return 0;
}
