/* Why a module tree has no function of a name. */
#include "module/not_found.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
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

void not_found_add(const struct not_found *self, struct text *text) {
  if (self->hint != NULL) text_format(text, "%s", self->hint);
  else names_add_near(text, &self->names, &self->also, self->name);
}

void not_found_clear(struct not_found *self) {
  free(self->hint);
  names_clear(&self->names);
  names_clear(&self->also);
}

int module_not_found(dso_module *self, const char *name) {
  struct not_found found = {.name = name};
  struct text text = {0};
  text_check(&text, module_visit(self, not_found_see, &found));
  text_format(&text, "%s: no function '%s' in its tree", module_where(self), name);
  if (found.holder != NULL)
    text_format(&text, "; module '%s' carries it, but cannot run here", found.holder->type_key);
  else not_found_add(&found, &text);
  not_found_clear(&found);
  return text_raise(&text, "FunctionNotFoundError");
}
