/* Values by name, in the order in which the names were added. */
#pragma once

#include "blob/reader.h"

struct kept {
  struct kept *next;
  dso_any value; /* owned */
  size_t nbytes;
  char name[]; /* with a NUL after it */
};

/* The value of a name, or NULL. */
dso_any *kept_find(struct kept *list, struct span name);

/* An entry to be added, with a value that it takes over, also on failure. NULL with
 * OutOfMemoryError raised. */
struct kept *kept_new(struct span name, dso_any value);

/* Add an entry. Returns one to be freed, or NULL: the same one if the name exists, with the former
 * value. Nothing is freed here, so that the caller can do it after it released its lock. */
struct kept *kept_add(struct kept **list, struct kept *entry);

/* Free a list; NULL is ignored. */
void kept_free(struct kept *list);
