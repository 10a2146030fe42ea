/* The node of a library's host code: key "_lib" in a blob, type key "library". */
#ifndef DSO_PACKER_MODULE_LIBRARY_H
#define DSO_PACKER_MODULE_LIBRARY_H

#include "module/origin.h"

/* Make the node, and let the library's code call its imports. NULL with the error raised. */
dso_module *library_module_new(struct origin *origin);

int is_library_module(const dso_module *module);

#endif
