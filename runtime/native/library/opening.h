/* From a file that was checked to its image in memory: dlopen, and proof that it opened that file. No
 * Python.h. */
#ifndef DSO_PACKER_LIBRARY_OPENING_H
#define DSO_PACKER_LIBRARY_OPENING_H

#include "library/loaded.h"

struct opening {
  struct loaded *library;    /* with its key; gets its handle and spelling */
  const struct loaded *same; /* an open library of the same file, or NULL */
  const char *path;
  int descriptor; /* of the file that was checked */
  int bridged;    /* it is to find what the core provides */
  int changed;    /* the file was replaced or changed: check it and open it again */
  struct load_error *error;
};

/* Returns 0 with the library open, or -1 with *error filled, or `changed` set. Called with the lock of
 * loaded.c held. */
int opening_run(struct opening *self);

#endif
