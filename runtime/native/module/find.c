/* Look-up of functions in a module tree. */
#include "module/module.h"

int module_find_own(dso_module *self, const char *name, dso_function **function) {
  return self->type->find != NULL ? self->type->find(self, name, function) : 0;
}

struct search {
  const char *name;
  const dso_module *left_out; /* or NULL */
  struct session *session;    /* or NULL */
  dso_function *function;
};

static int find_in(void *context, dso_module *module) {
  struct search *search = context;
  if (module == search->left_out) return 0;
  if (search->session != NULL && module->type->find_with != NULL)
    return module->type->find_with(module, search->session, search->name, &search->function);
  return module_find_own(module, search->name, &search->function);
}

static int run(struct search *search, dso_module *root, dso_function **function) {
  int status = module_visit(root, find_in, search);
  if (status > 0) *function = search->function;
  return status;
}

int module_find(dso_module *self, const char *name, dso_function **function) {
  dso_module *const *imports;
  int status = module_find_own(self, name, function);
  if (status != 0 || module_imports(self, &imports) == 0) return status;
  return module_find_import(self, name, function);
}

int module_find_import(dso_module *self, const char *name, dso_function **function) {
  struct search search = {.name = name, .left_out = self};
  return run(&search, self, function);
}

int module_find_with(dso_module *self, struct session *session, const char *name,
                     dso_function **function) {
  struct search search = {.name = name, .session = session};
  return run(&search, self, function);
}
