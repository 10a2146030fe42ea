/* The roots of the files that are in use: a file gives one tree while that is alive. */
#pragma once

#include "library/checked_file.h"
#include "module/module.h"

/* The root of a file that is in use, owned by the caller; or NULL. */
dso_module *resident_find(const struct file_key *key);

/* The same for the first file of `nbytes` bytes that `is_wanted` accepts. */
dso_module *resident_search(size_t nbytes,
                            int (*is_wanted)(const dso_module *root, const void *context),
                            const void *context);

/* Make a root resident. Returns it; or the root, now owned by the caller, that another thread made
 * resident first; or NULL with OutOfMemoryError raised. */
dso_module *resident_add(const struct file_key *key, dso_module *root);

/* Called when a resident module ends. */
void resident_forget(dso_module *root);
