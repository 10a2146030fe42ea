/* Opening a checked file: dlopen, and proof that it opened the file that was checked. */
#pragma once

#include "library/loaded.h"

struct opening {
  struct loaded *library;    /* its key is set; handle and spelling are filled in */
  const struct loaded *same; /* an open library of the same file, or NULL */
  const char *path;
  int descriptor; /* of the checked file */
  int bridged;    /* open through a bridge (bridge.h) */
  int is_bound;   /* the library's code calls the functions of this bridge */
  int changed;    /* the file was replaced or modified; the caller checks and opens it again */
  struct load_error *error;
};

/* Return 0 with the library open, or -1 with *error filled or `changed` set. The caller holds the
 * lock of loaded.c. */
int opening_run(struct opening *self);
