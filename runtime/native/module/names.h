/* Lists of names, and the end of a not-found message. */
#ifndef DSO_PACKER_MODULE_NAMES_H
#define DSO_PACKER_MODULE_NAMES_H

#include <stddef.h>

struct names {
  size_t count, capacity;
  char **items;
};

/* Append a copy of a name. Returns 0, or -1 with OutOfMemoryError raised. */
int names_add(struct names *self, const char *name);
void names_sort(struct names *self); /* also removes duplicates */
void names_clear(struct names *self);

/* "; near names: 'a', 'b'" for similar names, else "; it has: ..." for some that exist; "" without
 * names. As near_names of runtime/error.py. Freed by free(); NULL without memory. */
char *names_near(const struct names *self, const char *name);

/* The same; names of `also` are shown only if they are similar. */
char *names_near_also(const struct names *self, const struct names *also, const char *name);

#endif
