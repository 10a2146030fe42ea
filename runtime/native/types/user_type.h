/* Modules of types that the program registered. */
#pragma once

#include "module/module.h"

/* Read a payload with the loader of the program. Returns 0, or -1 with the error raised. */
int user_type_load(const dso_type *wanted, struct reader *reader, dso_module **module);
