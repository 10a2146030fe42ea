/* Where the modules of a tree come from: a library file, or a model linked into the program.
 *
 * Every module of the tree retains it (dso_module.owner), so the file stays open as long as they
 * live. It also has the options of the load. */
#pragma once

#include "library/found_function.h"
#include "module/module.h"

struct context;
struct origin;

/* A function of host code that was looked up. It lives as long as its origin. */
struct host_function {
  struct host_function *next;
  const struct origin *origin;
  struct found_function found;
  char name[];
};

struct origin_type {
  /* Find constant data. Returns 1, 0 if there is none, or -1 with the error raised. */
  int (*data)(const struct origin *self, const char *symbol, const uint8_t **bytes, size_t *nbytes);
  /* Find a function. Returns 1, 0, or -1 with *error filled. */
  int (*function)(const struct origin *self, const char *name, struct found_function *found,
                  struct load_error *error);
  /* Call `visit` for each symbol that begins with `start`, until it returns nonzero; return that,
   * or 0. */
  int (*visit_symbols)(const struct origin *self, const char *start,
                       int (*visit)(void *arg, const char *symbol), void *arg);
  /* True if an address is in read-only memory of the library. NULL: it is not known. */
  int (*is_read_only)(const struct origin *self, const void *address);
  /* A hint for a name that is not found, freed by free(), or NULL. */
  char *(*hint)(const struct origin *self, const char *name);
  void (*close)(struct origin *self);
};

/* The options of a load. In an origin, whose load may be over, `verify` is not called: it shows
 * that the library and the libraries that it needs were verified. */
struct load_options {
  int (*verify)(void *context, const char *path, const void *bytes, size_t nbytes);
  void *verify_context;
  int is_part; /* within a verified library; the libraries that it needs are not verified */
  const DLDevice *devices; /* allowed beside the CPU; NULL: all */
  int num_devices;
};

enum { ORIGIN_BUCKETS = 64 };

struct origin {
  dso_object object;
  const struct origin_type *type;
  struct ending ending;
  char *path;                  /* for messages */
  struct load_options options; /* `devices` is owned */
  struct context *context;     /* of its host code; or NULL */
  struct host_function *functions[ORIGIN_BUCKETS];
};

/* A new origin of `nbytes` bytes, whose first member is the struct above and the rest zero, of a
 * type that has nothing to close. It copies the options. NULL with OutOfMemoryError raised. */
void *origin_new(size_t nbytes, const char *path, const struct load_options *options);

/* The origin of a module, or NULL if it was not loaded. */
struct origin *origin_of(const dso_module *module);

/* Find a function, once for each name. Returns 1 with *found borrowed, 0, or -1 raised. */
int origin_function(struct origin *self, const char *name, const struct host_function **found);

/* True for names that a function can have: ASCII that is printable. */
int is_function_name(const char *name);

/* The path of a module's origin, or else its type key: the begin of a message about the module. */
const char *module_where(const dso_module *module);
