/* Loads that the program verifies: of a sealed copy, and of copies of the needed libraries. */
#pragma once

#include "module/file_origin.h"

struct copy;

/* Copy the file at `path`, or `nbytes` bytes if that is NULL, to sealed memory, and have the copy
 * verified. NULL with the error raised. */
struct copy *copy_new(const char *path, const void *bytes, size_t nbytes,
                      const struct load_options *options);
void copy_free(struct copy *self);

/* The root, owned by the caller, of a verified library of equal bytes that is in use; or NULL. */
dso_module *copy_resident(const struct copy *self);

/* Open the copy, after the libraries that it needs. NULL with the error raised. */
struct file_origin *copy_open(struct copy *self);

/* Have the needed libraries of one that is in use verified. Returns 0, or -1 with the error raised:
 * another verification may have accepted them. */
int verify_needed(const struct file_origin *file, const struct load_options *options);
