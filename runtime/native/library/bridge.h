/* Opening a library that leaves functions of TVM undefined, so that it finds ours. No Python.h.
 *
 * Making the core's symbols global would show them to a tvm_ffi that is imported later, which would
 * then call ours on its own objects. Instead the library is opened as a dependency: of a shared
 * object in memory, the bridge, that needs the core and the library and holds nothing else. What
 * the library leaves undefined is looked up in what the bridge needs, and nobody else sees it. */
#ifndef DSO_PACKER_LIBRARY_BRIDGE_H
#define DSO_PACKER_LIBRARY_BRIDGE_H

#include "library/checked_file.h"

/* Whether the file leaves a function undefined that the core provides, and brings no library of
 * TVM's along that has it. */
int bridge_is_needed(const struct checked_file *file);

/* dlopen(path, RTLD_NOW | RTLD_LOCAL) by way of a bridge; NULL with *error filled. */
void *bridge_open(const char *path, struct load_error *error);

#endif
