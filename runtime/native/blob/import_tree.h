/* The import tree of a blob: CSR arrays over its modules, root 0; checked before they are used. */
#pragma once

#include "blob/blob.h"

enum { TREE_MOST_MODULES = 65536, TREE_MOST_CHILDREN = 1 << 20 };

/* Read the row pointers and the child indices into a blob without a tree. Returns 0, or -1 with an
 * error raised; blob_clear frees them. */
int tree_read(struct reader *reader, struct blob *blob);

/* Refuse arrays that are not a tree of `num_nodes` modules with root 0. `at` is the offset of the
 * _import_tree entry, for messages. */
int tree_check(const struct reader *reader, const struct blob *blob, size_t num_nodes, size_t at);
