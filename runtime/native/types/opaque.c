/* A module whose type key has no loader. */
#include "types/opaque.h"

#include "abi/heap.h"
#include "abi/text.h"
#include "module/loaders.h"

struct opaque_module {
  dso_module module;
  struct span payload;
};

static char *hint(dso_module *self, const char *name) {
  struct text known = {0};
  (void)name;
  loaders_list(&known);
  char *text = heap_format(
      "; module type '%s' has no loader here, so its %zu bytes are only carried; known: %s. "
      "Register one with dso_register_loader, and load again",
      self->type_key, ((struct opaque_module *)(void *)self)->payload.size, text_of(&known));
  text_free(&known);
  return text;
}

static const struct module_type type = {.hint = hint};

dso_module *opaque_module_new(struct span type_key, struct span payload, dso_object *owner) {
  struct opaque_module *self = module_new(&type, type_key, sizeof *self, owner);
  if (self == NULL) return NULL;
  self->payload = payload;
  return &self->module;
}
