/* Files in memory that no process can change: what is verified and checked is what dlopen opens. */
#pragma once

#include <stddef.h>

#include "library/load_error.h"

enum { SEALED_NAME = 32 };

/* Copy bytes. Return the descriptor, which the caller owns, or -1 with *error filled. */
int sealed_file_of(const void *bytes, size_t nbytes, struct load_error *error);

/* Copy an open file, and store the real path of its folder in `folder`, of PATH_MAX bytes. */
int sealed_file_copy(int source, size_t nbytes, char *folder, struct load_error *error);

/* Write the name by which this process opens the file. */
void sealed_file_name(int descriptor, char name[SEALED_NAME]);
