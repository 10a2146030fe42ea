/* Named tensors of a tree: of equal names, the first in preorder. */
#include <stdint.h>

#include "dso.h"
#include "dso/null.h"
#include "module/weights.h"

/* ---- One */

static int not_found(dso_module *module, const char *name) {
  struct names names = {.count = 0};
  struct text text = {0};
  text_check(&text, module_weight_names(module, &names));
  text_format(&text, "no weight '%s' in the tree", name);
  names_add_near(&text, &names, NULL, name);
  names_clear(&names);
  return text_raise(&text, "KeyError");
}

int dso_module_weight(dso_module *module, const char *name, DLTensor *tensor) {
  if (is_null(module, "dso_module_weight", "a module") ||
      is_null(name, "dso_module_weight", "a name") ||
      is_null(tensor, "dso_module_weight", "a tensor to fill"))
    return -1;
  int status = module_weight(module, name, tensor);
  if (status == 0) return not_found(module, name);
  return status > 0 ? 0 : -1;
}

/* ---- All */

struct listing {
  dso_module *root, *module;
  dso_visit_weight visit;
  void *context;
  int num_modules; /* with weights, so far */
};

/* The first module of the tree that has the name. */
struct owner {
  const char *name;
  const dso_module *module;
};

static int find_owner(void *context, dso_module *module) {
  struct owner *owner = context;
  DLTensor tensor;
  if (module->type->weight == NULL) return 0;
  int status = module->type->weight(module, owner->name, &tensor);
  if (status > 0) owner->module = module;
  return status;
}

/* A name that an earlier module has was visited there. */
static int visit_once(void *context, const char *name, const DLTensor *tensor) {
  struct listing *self = context;
  struct owner owner = {.name = name};
  if (self->num_modules > 1) {
    int status = module_visit(self->root, find_owner, &owner);
    if (status < 0) return status;
    if (owner.module != self->module) return 0;
  }
  DLTensor readable = *tensor;
  if (tensor->data == NULL) { /* empty, or incomplete: then the search by name says why */
    int status = self->module->type->weight(self->module, name, &readable);
    if (status <= 0) return status;
  }
  return self->visit(self->context, name, &readable);
}

static int visit_module(void *context, dso_module *module) {
  struct listing *self = context;
  if (module->type->visit_weights == NULL) return 0;
  self->module = module;
  self->num_modules++;
  return module->type->visit_weights(module, visit_once, self);
}

int dso_module_weights(dso_module *module, dso_visit_weight visit, void *context) {
  if (is_null(module, "dso_module_weights", "a module") ||
      is_null((const void *)(uintptr_t)visit, "dso_module_weights", "a function to call"))
    return -1;
  struct listing listing = {.root = module, .visit = visit, .context = context};
  return module_visit(module, visit_module, &listing);
}
