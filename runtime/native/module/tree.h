/* From a library to its module tree. */
#pragma once

#include "module/origin.h"

/* The tree of a file, of bytes, or of the models that were linked into the program with a prefix.
 * The same file or the same bytes give the same tree while that is in use. Owned; NULL with the
 * error raised. */
dso_module *tree_load(const char *path, const struct load_options *options);
dso_module *tree_load_bytes(const void *bytes, size_t nbytes, const struct load_options *options);
dso_module *tree_of_program(const char *prefix);

/* Build the tree of an origin that was opened. `structure` is the CRC-32 of the blob's structure
 * that the library lists, or NULL. */
dso_module *tree_build(struct origin *origin, const uint32_t *structure);
