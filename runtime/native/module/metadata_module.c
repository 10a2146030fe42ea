/* TODO: the loader of this family. */
#include "abi/raised.h"
#include "module/module.h"

int load_metadata_module(struct reader *reader, struct span type_key, dso_module **module) {
  (void)reader, (void)type_key, (void)module;
  return raised_format("NotImplementedError", "load_metadata_module");
}
