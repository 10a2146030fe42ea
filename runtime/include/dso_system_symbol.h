/* dso_system_symbol.h: the list of symbols that statically linked models registered. C99, C++11. */
#ifndef DSO_SYSTEM_SYMBOL_H
#define DSO_SYSTEM_SYMBOL_H

#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One symbol; a list that only grows, at its head. */
typedef struct dso_system_symbol {
  const struct dso_system_symbol *next;
  void *address;
  const char *name; /* behind the structure */
} dso_system_symbol;

/* Add a symbol: 0, also for one that is there with this address; 1 if it is there with another,
 * which it keeps; -1 without memory. Writers take turns; readers never wait. */
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
