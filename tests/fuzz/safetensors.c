/* safetensors payloads: the load skips one, and the first use of its tensors parses its header. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/object.h"
#include "abi/raised.h"
#include "module/embedder.h"
#include "module/module.h"
#include "types/families.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static const struct span key = {"safetensors", sizeof "safetensors" - 1};
static volatile uint64_t sum; /* what is read is used */

static int read_weight(void *context, const char *name, const DLTensor *tensor) {
  size_t nbytes = (size_t)(tensor->dtype.bits * tensor->dtype.lanes + 7) / 8;
  DLTensor same;
  dso_module *module = context;
  for (int i = 0; i < tensor->ndim; i++) nbytes *= (size_t)tensor->shape[i];
  for (size_t i = 0; i < nbytes; i++)
    sum += ((const uint8_t *)tensor->data)[tensor->byte_offset + i];
  if (module->type->weight(module, name, &same) != 1 || same.data != tensor->data) abort();
  return 0;
}

static void check_raised(void) {
  const char *kind, *message;
  if (!raised_look(&kind, &message) || message[0] == '\0') abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  dso_module *module = NULL;
  uint8_t *file = malloc(nbytes > 0 ? nbytes : 1); /* its end is the end of a block */
  if (nbytes > 0) memcpy(file, data, nbytes);
  struct reader reader = {.bytes = file, .end = nbytes, .where = "fuzz", .is_last_entry = 1};
  embedder_install();
  if (nbytes % 16 == 0) (void)heap_fail_at(1 + (long)(nbytes / 16 % 20));
  if (load_safetensors(&reader, key, &module) != 0) check_raised();
  else if (module->type->visit_weights(module, read_weight, module) != 0) check_raised();
  (void)heap_fail_at(0);
  module_release(module);
  raised_forget();
  free(file);
  return 0;
}
