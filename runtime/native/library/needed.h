/* The libraries outside the system's folders that a file needs. A verified load opens them before the
 * file: ld.so then finds them by their SONAME, and searches for no other file. */
#ifndef DSO_PACKER_LIBRARY_NEEDED_H
#define DSO_PACKER_LIBRARY_NEEDED_H

#include <limits.h>

#include "library/checked_file.h"

enum { NEEDED_MAX_DEPTH = 32 }; /* of libraries that need each other */

struct needed {
  const struct checked_file *file;
  const char *folder; /* for $ORIGIN; "" for bytes, which have no folder */
  struct load_error *error;
  size_t index;
  const char *name; /* in the file */
  char path[PATH_MAX], real_path[PATH_MAX];
};

/* Find the next one: 1 with `name`, the text of DT_NEEDED, and `path`; 0 after the last; -1 with
 * *error filled. Libraries of the system that ld.so would search elsewhere first are opened for the
 * rest of the process, since a file may be put there later. */
int needed_next(struct needed *self);

#endif
