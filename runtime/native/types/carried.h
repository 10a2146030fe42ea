/* A module that lists functions, but cannot run them here: it is carried for another program. */
#pragma once

#include "blob/texts.h"
#include "module/module.h"

/* Make a module that lists `names`, which it takes over, also on failure. Returns 0, or -1 with the
 * error raised. */
int carried_module_new(struct span type_key, struct texts names, dso_object *owner,
                       dso_module **module);
