/* Contexts: what stands behind the context symbols of an open library. No Python.h.
 *
 * A library's pointer variables are filled when it is opened: each provided function (provided.h)
 * under its name with "__" in front, and the context itself. Host code gives the context back when
 * it asks for an imported function. Such a pointer is compared, never followed: the file may be
 * loaded by a TVM runtime too, and then has a context of that.
 *
 * A context is of an image in memory, which several open libraries may share. What its code found
 * stays for as long as the image is mapped, since code may remember it. */
#ifndef DSO_PACKER_LIBRARY_CONTEXT_H
#define DSO_PACKER_LIBRARY_CONTEXT_H

#include "library/import_cache.h"

struct loaded;

struct context {
  struct context *next; /* of all contexts with such an address, for ever */
  int is_live;
  int num_libraries; /* that are open and share it */
  void *modules;     /* imports.c: whom to ask */
  struct import_cache import_cache;
};

/* Fill the variables that the library defines and that nobody filled before. Returns the context
 * that it has from here on, or NULL when it has no variable for one. Called with the lock of
 * loaded.c held: the first to open fills, before any other opener can call. */
struct context *context_open(const struct loaded *library);

/* The same for symbols that lie anywhere: `find` gives where the variable of a name is, or NULL. */
typedef void *(*find_variable)(const void *where, const char *name);
struct context *context_fill(find_variable find, const void *where);

/* One library less has it; called with the lock held. Returns the context if its image is gone:
 * it is to be freed once the lock is not held, since that releases functions. */
struct context *context_close(struct context *context, int is_mapped);
void context_free(struct context *context);

/* The context that host code handed in, or NULL when it is none of ours. Any thread. */
struct context *context_of(const void *pointer);

#endif
