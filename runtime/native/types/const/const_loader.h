/* const_loader: constants, passed to the host code that needs them on its first use. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "blob/arrays.h"
#include "blob/name_order.h"
#include "module/module.h"
#include "types/used_tensor.h"

/* A function that needs constants. */
struct const_symbol {
  struct span name; /* first, for name_order_make */
  size_t num_constants;
  struct span *constants;
  atomic_int is_initialized;
  int is_running; /* its __init_ function is being called, by the thread that holds the lock */
};

struct const_loader {
  dso_module module;
  enum dialect dialect;
  struct named_arrays arrays;
  used_tensor *used; /* of `arrays` */
  struct name_order order;
  size_t num_symbols;
  struct const_symbol *symbols;
  struct name_order symbol_order;
  pthread_mutex_t lock; /* recursive; held during calls of __init_ functions */
};

extern const struct module_type const_loader_type;

/* Read the payload into an empty module: 0, or -1 with the error raised (const_payload.c). */
int const_payload_read(struct const_loader *self, struct reader *reader);
void const_payload_clear(struct const_loader *self);

/* The place of a constant, or NO_NAME. */
size_t const_loader_place(const struct const_loader *self, const char *name, size_t nbytes);

/* A constant to read; borrowed. NULL with an error raised. */
dso_tensor_object *const_loader_use(struct const_loader *self, size_t place);

/* Find a function of the imports, after its constants were passed to it. Returns 1 with an owned
 * function, 0, or -1 with the error raised (const_init.c). */
int const_loader_find(struct const_loader *self, const char *name, dso_function **function);
