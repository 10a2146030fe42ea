/* Why a module tree has no function of a name. */
#include "module/not_found.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/origin.h"

static int see_name(void *context, const char *name, const char *signature) {
  struct not_found *self = context;
  (void)signature;
  if (self->holder == NULL && strcmp(name, self->name) == 0) self->holder = self->here;
  return names_add(&self->names, name);
}

int not_found_see(void *not_found, dso_module *module) {
  struct not_found *self = not_found;
  self->here = module;
  if (self->hint == NULL && module->type->hint != NULL)
    self->hint = module->type->hint(module, self->name);
  if (module->type->visit_functions == NULL) return 0;
  return module->type->visit_functions(module, see_name, self);
}

char *not_found_text(const struct not_found *self) {
  return self->hint != NULL ? heap_copy_text(self->hint)
                            : names_near_also(&self->names, &self->also, self->name);
}

void not_found_clear(struct not_found *self) {
  free(self->hint);
  names_clear(&self->names);
  names_clear(&self->also);
}

int module_not_found(dso_module *self, const char *name) {
  struct not_found found = {.name = name};
  char *why = NULL;
  int status = module_visit(self, not_found_see, &found);
  if (status == 0 && found.holder != NULL)
    why = heap_format("; module '%s' carries it, but cannot run here", found.holder->type_key);
  else if (status == 0) why = not_found_text(&found);
  if (why != NULL)
    (void)raised_format("FunctionNotFoundError", "%s: no function '%s' in its tree%s",
                        module_where(self), name, why);
  else if (status == 0) (void)raised_format("OutOfMemoryError", "no memory for a message");
  free(why);
  not_found_clear(&found);
  return -1;
}
