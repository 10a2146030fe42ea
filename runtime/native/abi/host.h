/* The functions that the core needs from the program around it. No Python.h.
 *
 * The core never calls Python. Whatever embeds it (python/host.c in the extension module, a test
 * driver) fills in this table before it opens the first library. The defaults serve a program that
 * has no modules to search, no lock to give up and no signals to handle. */
#ifndef DSO_PACKER_ABI_HOST_H
#define DSO_PACKER_ABI_HOST_H

#include <stdint.h>

struct context;

struct host {
  /* Look up a function that a library's code imports. Returns a borrowed dso_object, cached in the
   * context, or NULL with the error raised. Called by any thread. */
  void *(*find_import)(struct context *context, const char *name);

  /* Free what the host stored in the context, whose library is unmapped. Called by any thread. */
  void (*forget_context)(struct context *context);

  /* Give up the lock that this thread may hold, before it waits for another thread. Returns the
   * argument for `resume`, or NULL if the thread held no lock. */
  void *(*suspend)(void);
  void (*resume)(void *state); /* never called with NULL */

  /* Handle pending signals. Returns -1 with the error raised to end the running bytecode. `*next`
   * is 0 at the first call in a run; the host stores there when it wants to be called again. */
  int (*poll)(int64_t *next);
};

extern struct host host;

#endif
