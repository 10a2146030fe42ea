/* The weights of a library's tree, for its host code (dso_packer.h, dso_weight). */
#include "abi/embedder.h"
#include "abi/raised.h"
#include "library/context.h"
#include "library/provided.h"

int DSOFindWeight(void *pointer, const char *name, DLTensor *tensor) {
  struct context *context = context_of(pointer);
  if (name == NULL || tensor == NULL)
    return raised_format("TypeError", "weight: expected a name and a tensor, found NULL");
  if (context != NULL) return embedder.find_weight(context, name, tensor);
  return raised_format("RuntimeError",
                       "weight '%s': library context, expected one of an open library, found %s; "
                       "load the library with runtime.load or dso_load before others load it",
                       name, pointer == NULL ? "NULL" : "an unknown pointer");
}
