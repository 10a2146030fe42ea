/* Why modules have no function of a name: the end of a message. */
#pragma once

#include "module/module.h"
#include "module/names.h"

struct not_found {
  const char *name;
  struct names names; /* of functions that exist */
  struct names also;  /* of functions that the text names only if they are similar */
  dso_module *here;   /* whose names are visited */
  dso_module *holder; /* the first that carries the function, but cannot run it; or NULL */
  char *hint;         /* the first that a module gives; or NULL */
};

/* For module_visit: collect what a module says. */
int not_found_see(void *not_found, dso_module *module);

/* Append the end of the message. */
void not_found_add(const struct not_found *self, struct text *text);
void not_found_clear(struct not_found *self);
