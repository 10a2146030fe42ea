/* dso_system_symbol.h: the list of symbols that statically linked models register. C99, C++11. */
#ifndef DSO_SYSTEM_SYMBOL_H
#define DSO_SYSTEM_SYMBOL_H

#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One symbol. The list only grows, at its head. */
typedef struct dso_system_symbol {
  const struct dso_system_symbol *next;
  void *address;
  const char *name; /* stored after the structure */
} dso_system_symbol;

/* Add a symbol. Returns 0, also if it is in the list with the same address; 1 if it is there with
 * another address, which is kept; -1 if memory is exhausted. Writers must be serialised; readers
 * need no lock. */
static inline int dso_system_symbol_add(const dso_system_symbol **list, const char *name,
                                        void *address) {
  const dso_system_symbol *first = __atomic_load_n(list, __ATOMIC_ACQUIRE);
  for (const dso_system_symbol *known = first; known; known = known->next)
    if (!strcmp(known->name, name)) return known->address != address;
  size_t nbytes = strlen(name) + 1;
  dso_system_symbol *made = (dso_system_symbol *)malloc(sizeof *made + nbytes);
  if (!made) return -1;
  made->next = first;
  made->address = address;
  made->name = (const char *)memcpy(made + 1, name, nbytes);
  __atomic_store_n(list, made, __ATOMIC_RELEASE);
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
