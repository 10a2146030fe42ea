/* Contexts: the objects that the context symbols of open libraries point to.
 *
 * Opening a library fills its pointer variables: one for each provided function (provided.h), named
 * "__" and the function's name, and one or two for the context. Host code passes the context when
 * it looks up an imported function. The pointer is compared with known contexts before it is
 * followed, because a TVM runtime that loaded the same file may have stored its own context there.
 *
 * context.c describes the lifetime. */
#pragma once

#include "library/import_cache.h"

struct loaded;

struct context {
  struct context *next; /* in the bucket; contexts are never removed */
  int is_live;
  int num_libraries; /* open libraries that share it */
  void *modules;     /* owned by the embedder: the modules to search */
  struct import_cache import_cache;
};

/* Fill the library's variables that are still NULL. Return its context, or NULL if it has no
 * variable for one. The caller holds the lock of loaded.c, so that the first opener fills the
 * variables before any other opener can call. */
struct context *context_open(const struct loaded *library);

/* The same for symbols at any address: `find` returns the variable of a name, or NULL. */
typedef void *(*find_variable)(const void *where, const char *name);
struct context *context_fill(find_variable find, const void *where);

/* True if the library has a variable for its context that no runtime has set. */
int context_is_unset(const struct loaded *library);

/* Remove one library from the count; the caller holds the lock of loaded.c. Return the context if
 * its image is unmapped. The caller then frees it without the lock, because that releases
 * functions. */
struct context *context_close(struct context *context, int is_mapped);
void context_free(struct context *context);

/* Return the live context at this address, or NULL. Called by any thread. */
struct context *context_of(const void *pointer);
