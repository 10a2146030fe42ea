/* Lists of names, and the end of a not-found message. */
#pragma once

#include "abi/text.h"

struct names {
  size_t count, capacity;
  char **items;
};

/* Append a copy of a name. Returns 0, or -1 with OutOfMemoryError raised. */
int names_add(struct names *self, const char *name);
int names_add_function(void *names, const char *name, const char *signature); /* as names_add */
void names_sort(struct names *self); /* also removes duplicates */
void names_clear(struct names *self);

/* Append "; near names: 'a', 'b'" for similar names, else "; it has: ..." for some that exist; nothing
 * without names. As near_names of runtime/error.py. Names of `also` are shown only if they are
 * similar; it may be NULL. */
void names_add_near(struct text *text, const struct names *self, const struct names *also,
                    const char *name);
