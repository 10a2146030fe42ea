/* A module that lists functions, but cannot run them here. */
#include "types/carried.h"

struct carried {
  dso_module module;
  struct texts names;
};

static struct carried *carried_of(dso_module *self) { return (struct carried *)(void *)self; }

static int visit_functions(dso_module *self, dso_visit_function visit, void *context) {
  const struct texts *names = &carried_of(self)->names;
  int status = 0;
  for (size_t i = 0; i < names->count && status == 0; i++)
    status = visit(context, names->items[i], NULL);
  return status;
}

static void end(dso_module *self) { texts_clear(&carried_of(self)->names); }

static const struct module_type type = {.visit_functions = visit_functions, .end = end};

int carried_module_new(struct span type_key, struct texts names, dso_object *owner,
                       dso_module **module) {
  struct carried *self = module_new(&type, type_key, sizeof *self, owner);
  if (self == NULL) {
    texts_clear(&names);
    return -1;
  }
  self->names = names;
  *module = &self->module;
  return 0;
}
