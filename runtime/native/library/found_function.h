/* The functions of a library by name: their code and their metadata. */
#pragma once

#include "library/facts.h"
#include "library/loaded.h"

struct found_function {
  const uint8_t *code;
  int is_packed; /* a packed C function of TVM; else a safe call */
  char *text;    /* owned: `facts` points into it; NULL without metadata */
  struct facts facts;
};

/* Find a function of a file: the safe call __tvm_ffi_<name>, or <name> as a packed C function, if its
 * metadata declares that or if it has none and TVM built the library. Return 1, 0 if there is no such
 * function, or -1 with *error filled. */
int loaded_function(const struct loaded *library, const char *name, struct found_function *found,
                    struct load_error *error);

/* The same of models in the process that registered with a prefix, or without one. */
int registered_function(const char *prefix, const char *name, struct found_function *found,
                        struct load_error *error);

/* Copy and parse metadata. Return NULL, the text of an error, or HEAP_NO_MEMORY. */
const char *found_function_read(struct found_function *self, const uint8_t *facts, size_t nbytes);
void found_function_free(struct found_function *self);
