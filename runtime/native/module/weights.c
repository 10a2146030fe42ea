/* The search of a tree for a named tensor. */
#include "module/weights.h"

struct search {
  const char *name;
  DLTensor *tensor;
};

static int find_in(void *context, dso_module *module) {
  struct search *search = context;
  return module->type->weight != NULL ? module->type->weight(module, search->name, search->tensor)
                                      : 0;
}

int module_weight(dso_module *root, const char *name, DLTensor *tensor) {
  struct search search = {name, tensor};
  return module_visit(root, find_in, &search);
}

static int add_name(void *names, const char *name, const DLTensor *tensor) {
  (void)tensor;
  return names_add(names, name);
}

static int add_names(void *names, dso_module *module) {
  return module->type->visit_weights != NULL ? module->type->visit_weights(module, add_name, names)
                                             : 0;
}

int module_weight_names(dso_module *root, struct names *names) {
  int status = module_visit(root, add_names, names);
  names_sort(names);
  return status;
}
