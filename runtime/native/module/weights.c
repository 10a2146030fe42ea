/* The search of a tree for a named tensor. */
#include "module/weights.h"

struct search {
  const char *name;
  DLTensor *tensor;
  const dso_module *left_out;
  dso_module *owner;
};

static int find_in(void *context, dso_module *module) {
  struct search *search = context;
  if (module == search->left_out || module->type->weight == NULL) return 0;
  search->owner = module;
  return module->type->weight(module, search->name, search->tensor);
}

int module_weight(dso_module *root, const char *name, DLTensor *tensor) {
  struct search search = {.name = name, .tensor = tensor};
  return module_visit(root, find_in, &search);
}

int module_import_weight(dso_module *module, const char *name, DLTensor *tensor,
                         dso_module **owner) {
  struct search search = {.name = name, .tensor = tensor, .left_out = module};
  int status = module_visit(module, find_in, &search);
  *owner = search.owner;
  return status;
}

struct listing {
  struct names *names;
  const dso_module *left_out;
};

static int add_name(void *names, const char *name, const DLTensor *tensor) {
  (void)tensor;
  return names_add(names, name);
}

static int add_names(void *context, dso_module *module) {
  const struct listing *listing = context;
  if (module == listing->left_out || module->type->visit_weights == NULL) return 0;
  return module->type->visit_weights(module, add_name, listing->names);
}

static int list(dso_module *root, struct listing listing) {
  int status = module_visit(root, add_names, &listing);
  names_sort(listing.names);
  return status;
}

int module_weight_names(dso_module *root, struct names *names) {
  return list(root, (struct listing){.names = names});
}

int module_import_weight_names(dso_module *module, struct names *names) {
  return list(module, (struct listing){.names = names, .left_out = module});
}
