/* Why a module tree has no function of a name. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/module.h"
#include "module/names.h"
#include "module/origin.h"

struct reason {
  const char *name;
  struct names names;
  const dso_module *here; /* whose names are visited */
  const dso_module *holder;
  const char *hint;
};

static int see_name(void *context, const char *name, const char *signature) {
  struct reason *self = context;
  (void)signature;
  if (self->holder == NULL && strcmp(name, self->name) == 0) self->holder = self->here;
  return names_add(&self->names, name);
}

static int see_module(void *context, dso_module *module) {
  struct reason *self = context;
  self->here = module;
  if (self->hint == NULL && module->type->hint != NULL)
    self->hint = module->type->hint(module, self->name);
  if (self->hint != NULL && *self->hint == '\0') self->hint = NULL;
  if (module->type->visit_functions == NULL) return 0;
  return module->type->visit_functions(module, see_name, self);
}

static char *text_of(const struct reason *self) {
  if (self->holder != NULL)
    return heap_format("; module '%s' carries it, but cannot run here", self->holder->type_key);
  return self->hint != NULL ? heap_copy_text(self->hint) : names_near(&self->names, self->name);
}

int module_not_found(dso_module *self, const char *name) {
  struct reason reason = {.name = name};
  int status = module_visit(self, see_module, &reason);
  char *why = status == 0 ? text_of(&reason) : NULL;
  if (why != NULL)
    (void)raised_format("FunctionNotFoundError", "%s: no function '%s' in its tree%s",
                        module_where(self), name, why);
  else if (status == 0) (void)raised_format("OutOfMemoryError", "no memory for a message");
  free(why);
  names_clear(&reason.names);
  return -1;
}
