/* The functions that the core needs from the program around it.
 *
 * The core never calls Python. The embedding program (python/embedder.c in the extension module, a test
 * driver) fills in this table before it opens the first library. The defaults serve a program that
 * has no modules to search, no lock to release and no signals to handle. */
#pragma once

#include <stddef.h>

#include "dso_abi.h"

struct context;

struct embedder {
  /* Look up a function that a library's code imports. Returns a borrowed dso_object, cached in the
   * context, or NULL with the error raised. Called by any thread. */
  void *(*find_import)(struct context *context, const char *name);

  /* Find a named tensor in the trees of the context's modules. Returns 0 with *tensor borrowed from
   * them, or -1 with the error raised. Called by any thread. */
  int (*find_weight)(struct context *context, const char *name, DLTensor *tensor);

  /* Find a global function of the program. Returns an owned Function object, or NULL with
   * FunctionNotFoundError raised. Called by any thread. */
  void *(*find_global)(const char *name);

  /* Print a text. Returns 0, or -1 with the error raised. Called by any thread. */
  int (*print)(const char *text, size_t nbytes);

  /* Return the current stream of a device in this thread, or NULL. Called by any thread. */
  void *(*current_stream)(int32_t device_type, int32_t device_id);

  /* Free what the embedder stored in the context, whose library is unmapped. Called by any thread. */
  void (*forget_context)(struct context *context);

  /* Release the embedder's lock if this thread holds it, before it waits for another thread. Returns
   * the argument for `resume`, or NULL if the thread held no lock. */
  void *(*suspend)(void);
  void (*resume)(void *state); /* never called with NULL */

  /* Return the time in milliseconds of a clock that is cheap to read, and may advance in steps of
   * some milliseconds; constant if `poll` does nothing. */
  int64_t (*now)(void);

  /* Handle pending signals. Returns -1 with the error raised to end the running bytecode. */
  int (*poll)(void);
};

extern struct embedder embedder;
