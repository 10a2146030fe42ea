/* A driver's library, opened at its first use, and the table of its functions. No Python.h. */
#ifndef DSO_PACKER_DEVICE_DRIVER_LIBRARY_H
#define DSO_PACKER_DEVICE_DRIVER_LIBRARY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

struct driver_function {
  const char *name;
  size_t offset; /* in the table of functions */
  int may_be_missing;
};

struct driver_library {
  const char *file, *kind, *oldest; /* "libOpenCL.so.1", "OpenCL", "OpenCL 1.2", for messages */
  const struct driver_function *functions;
  size_t num_functions;
  void *table;
  atomic_int is_open;
  pthread_mutex_t lock;
};

/* Fill the table, once; 0, or -1 with *wrong saying why (a text until this thread's next call).
 * Asking again is cheap, and finds a driver that was installed meanwhile. */
int driver_library_open(struct driver_library *library, const char **wrong);

static inline int driver_library_is_open(struct driver_library *library) {
  return atomic_load_explicit(&library->is_open, memory_order_acquire);
}

#endif
