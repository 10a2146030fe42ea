/* Named tensors of a tree: of equal names, the first in preorder. */
#pragma once

#include "module/module.h"
#include "module/names.h"

/* Find a named tensor. Returns 1 with *tensor borrowed from its module, 0, or -1 raised. */
int module_weight(dso_module *root, const char *name, DLTensor *tensor);

/* The same in the imports of a module. *owner is the module that has it, borrowed. */
int module_import_weight(dso_module *module, const char *name, DLTensor *tensor,
                         dso_module **owner);

/* Add the names of all weights, or of the imports' weights, each once. Returns 0, or -1 raised. */
int module_weight_names(dso_module *root, struct names *names);
int module_import_weight_names(dso_module *module, struct names *names);
