/* Opening a library with undefined functions of TVM, bound to the core's implementations.
 *
 * If the core's symbols were global, a tvm_ffi that is imported later would find them and call them
 * on its own objects. Instead the library is opened as a dependency of the bridge, a shared object
 * in memory that needs the library and defines the provided functions as stubs (stub.h), which jump
 * to the core's. The loader searches the bridge for the library's undefined symbols, and no other
 * object sees them. The core itself may be part of a program, which exports nothing. */
#pragma once

#include "library/checked_file.h"

/* True if the file has an undefined function that the core provides, and needs no library of TVM
 * that defines it. */
int bridge_is_needed(const struct checked_file *file);

/* dlopen(path, RTLD_NOW | RTLD_LOCAL) through a bridge. Return NULL with *error filled. */
void *bridge_open(const char *path, struct load_error *error);
