/* Where the modules of a tree come from: a library file, or a model linked into the program.
 *
 * Every module of the tree retains it (dso_module.owner), so the file stays open as long as they
 * live. It also has the options of the load. */
#ifndef DSO_PACKER_MODULE_ORIGIN_H
#define DSO_PACKER_MODULE_ORIGIN_H

#include "module/module.h"

struct context;
struct origin;

/* A function of host code. */
struct found_code {
  const uint8_t *code;
  int is_packed;  /* a packed C function of TVM; else a safe call */
  int is_writing; /* declared to write to arguments: first_written to end_written - 1 */
  int first_written, end_written;
};

struct origin_type {
  /* Find constant data. Returns 1, 0 if there is none, or -1 with the error raised. */
  int (*data)(const struct origin *self, const char *symbol, const uint8_t **bytes, size_t *nbytes);
  /* Find a function by its name. Returns 1, 0, or -1 with the error raised. */
  int (*function)(const struct origin *self, const char *name, struct found_code *found);
  /* Call `visit` for the symbols that begin with `start`, until it returns nonzero. */
  int (*visit_symbols)(const struct origin *self, const char *start,
                       int (*visit)(void *arg, const char *symbol), void *arg);
  void (*close)(struct origin *self);
};

/* The options of a load that its modules need. */
struct load_options {
  int (*verify)(void *context, const char *path, const void *bytes, size_t nbytes);
  void *verify_context;
  int allows_all; /* else only `devices`, and the CPU */
  int num_devices;
  DLDevice *devices; /* owned by the origin */
};

struct origin {
  dso_object object;
  const struct origin_type *type;
  struct ending ending;
  char *path; /* for messages */
  struct load_options options;
  struct context *context; /* of its host code; or NULL */
};

/* A new origin of `nbytes` bytes, whose first member is the struct above and the rest zero, of a
 * type that has nothing to close. NULL with OutOfMemoryError raised. */
void *origin_new(size_t nbytes, const char *path);

/* The origin of a module, or NULL if it was not loaded. */
struct origin *origin_of(const dso_module *module);

/* Its path, or else the module's type key: the begin of a message about the module. */
const char *module_where(const dso_module *module);

#endif
