/* The libraries outside the system's folders that a file needs. A verified load opens them before the
 * file: ld.so then finds them by their SONAME, and searches for no file. Each one is opened once, and
 * what is verified is read from that descriptor. Subfolders glibc-hwcaps are not searched. */
#pragma once

#include <limits.h>

#include "library/checked_file.h"

enum { NEEDED_MAX_DEPTH = 32 }; /* of libraries that need each other */

struct needed {
  const struct checked_file *file;
  const char *folder; /* for $ORIGIN; "" for bytes, which have no folder */
  int opens_all;      /* the system's libraries are opened first, too */
  int is_of_system;   /* the file is a library of the system, and needs only such */
  int depth;          /* of these */
  struct load_error *error;
  size_t index;
  const char *name; /* in the file */
  char path[PATH_MAX];
  int descriptor; /* owned by the caller */
  int is_own;     /* the file names the folder, not the process */
};

/* Find the next one: 1 with `name`, the text of DT_NEEDED, and `path`, which is open as
 * `descriptor`; 0 after the last; -1 with *error filled. Libraries of the system that ld.so would
 * search elsewhere first are opened for the rest of the process, since a file may be put there
 * later. */
int needed_next(struct needed *self);

/* Check that ld.so uses this open library for `name`. Returns 0, or -1 with *error filled. `handle`
 * is that of dlopen; the open library may also be another sealed file of the same bytes. */
int needed_check_opened(struct needed *self, void *handle, int descriptor);
