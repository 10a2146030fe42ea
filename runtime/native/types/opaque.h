/* A module whose type key has no loader: its payload is carried, but cannot be used. */
#pragma once

#include "module/module.h"

/* NULL with OutOfMemoryError raised. */
dso_module *opaque_module_new(struct span type_key, struct span payload, dso_object *owner);
