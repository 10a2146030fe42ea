/* A driver's shared library, opened at its first use, and the table of its functions. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

struct driver_function {
  const char *name;
  size_t offset; /* in the table of functions */
  int may_be_missing;
};

struct driver_library {
  const char *file, *kind, *oldest; /* "libOpenCL.so.1"; for messages "OpenCL" and "OpenCL 1.2" */
  const struct driver_function *functions;
  size_t num_functions;
  void *table;
  atomic_int is_open;
  pthread_mutex_t lock;
};

/* Open the library and fill the table, once. Returns 0, or -1 with *wrong pointing to the reason, a
 * text that is valid until this thread's next call. Later calls are cheap; after a failure they
 * find a driver that was installed in the meantime. */
int driver_library_open(struct driver_library *library, const char **wrong);

static inline int driver_library_is_open(struct driver_library *library) {
  return atomic_load_explicit(&library->is_open, memory_order_acquire);
}
