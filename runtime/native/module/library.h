/* The node of a library's host code: key "_lib" in a blob, type key "library". */
#pragma once

#include "module/origin.h"

/* Make the node, and let the library's code call its imports. NULL with the error raised. */
dso_module *library_module_new(struct origin *origin);

/* The code of a function of the node, which callers may call without a handle if they pass no
 * read-only memory that it writes; NULL for packed C functions. */
dso_safe_call library_code_of(const struct host_function *function);

int is_library_module(const dso_module *module);
