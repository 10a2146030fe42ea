/* Modules of types that the program registered. */
#ifndef DSO_PACKER_TYPES_USER_TYPE_H
#define DSO_PACKER_TYPES_USER_TYPE_H

#include "module/module.h"

/* Read a payload with the loader of the program. Returns 0, or -1 with the error raised. */
int user_type_load(const dso_type *wanted, struct reader *reader, dso_module **module);

#endif
