/* metadata_module: an empty payload; the module only groups its imports. */
#include "types/families.h"

static const struct module_type type;

int load_metadata_module(struct reader *reader, struct span type_key, dso_module **module) {
  *module = module_new(&type, type_key, sizeof **module, reader->owner);
  return *module != NULL ? 0 : -1;
}
