/* A node of the module tree, and the table of functions of its type.
 *
 * A module is an object of TVM FFI with type index DSO_MODULE; its deleter tells it from modules of
 * other runtimes. Lifetimes: a function retains its module; a module retains its imports and the
 * owner of its payload, which keeps the library open. Nothing refers back, so there are no cycles,
 * and the last reference closes the file at once. */
#pragma once

#include "abi/ending.h"
#include "blob/reader.h"
#include "dso.h"

struct session;

/* Each function may be NULL: the type has none of these. */
struct module_type {
  /* Find a function of the module itself. Returns 1 with an owned function, 0, or -1 raised. */
  int (*find)(dso_module *self, const char *name, dso_function **function);
  /* The same, of a function whose calls use a session (session/session.h). NULL: as `find`. */
  int (*find_with)(dso_module *self, struct session *session, const char *name,
                   dso_function **function);
  /* As dso_module_functions and dso_module_weights, for the module itself. */
  int (*visit_functions)(dso_module *self, dso_visit_function visit, void *context);
  int (*visit_weights)(dso_module *self, dso_visit_weight visit, void *context);
  /* Find a named tensor of the module itself. Returns 1 with *tensor borrowed, 0, or -1 raised. */
  int (*weight)(dso_module *self, const char *name, DLTensor *tensor);
  /* The entry name that the module sets, borrowed, or NULL. */
  const char *(*entry)(dso_module *self);
  /* Complete the module when the tree is built, before imports are linked: *self is replaced by
   * the node (shared_library: the loaded one). Returns 0, or -1 with the error raised. */
  int (*to_node)(dso_module **self);
  /* "; ...", why `name` is not found, for the error; freed by free(). NULL without a reason. */
  char *(*hint)(dso_module *self, const char *name);
  void (*end)(dso_module *self); /* free what the type owns, not the struct */
  int carries_imports;           /* its imports are in its payload, not in the blob's tree */
};

/* Imports are only ever appended. A reader loads num_imports first (module_imports). */
struct dso_module {
  dso_object object;
  const struct module_type *type;
  char *type_key;
  dso_object *owner; /* of its payload; or NULL */
  size_t num_imports;
  dso_module **imports;
  struct import_block *blocks; /* the memory of `imports`, and of its older places */
  struct ending ending;
  int is_resident; /* the root of a file: resident.c finds it for the next load */
};

/* A module of `nbytes` bytes, whose first member is the struct above and the rest zero. It retains
 * `owner`. Returns NULL with OutOfMemoryError raised. */
void *module_new(const struct module_type *type, struct span type_key, size_t nbytes,
                 dso_object *owner);

static inline void module_retain(dso_module *self) { object_retain(&self->object); }
static inline void module_release(dso_module *self) {
  if (self != NULL) object_release(&self->object);
}

/* The end of a loader: give a module to the caller if `status` is 0, else release it. Returns the
 * status. */
static inline int module_give(dso_module *self, int status, dso_module **module) {
  if (status == 0) *module = self;
  else module_release(self);
  return status;
}

/* Store the imports, and return their number. Valid as long as the module. */
static inline size_t module_imports(const dso_module *self, dso_module *const **imports) {
  size_t count = __atomic_load_n(&self->num_imports, __ATOMIC_ACQUIRE);
  *imports = __atomic_load_n(&self->imports, __ATOMIC_ACQUIRE);
  return count;
}

/* Append an import, and retain it. Returns 0, or -1 with the error raised. The caller makes sure
 * that no two threads do so at once (embedder_lock), and that there is no cycle. */
int module_append_import(dso_module *self, dso_module *imported);

/* Take a reference to a module that another thread may be ending; false if its last one is gone. */
int module_try_retain(dso_module *self);

/* The module of an object, or NULL if the object is not a module of this library. */
dso_module *module_of_object(const dso_object *object);

/* Find a function of the module itself, or of its imports. Returns 1 with an owned function, 0, or
 * -1 with the error raised. module_find_import leaves the module itself out. */
int module_find_own(dso_module *self, const char *name, dso_function **function);
int module_find(dso_module *self, const char *name, dso_function **function);
int module_find_import(dso_module *self, const char *name, dso_function **function);

/* As module_find, for calls that use a session. */
int module_find_with(dso_module *self, struct session *session, const char *name,
                     dso_function **function);

/* Raise FunctionNotFoundError for the tree of a module, with near names. Returns -1. */
int module_not_found(dso_module *self, const char *name);

/* A Function object that retains `module` and calls call(handle, ...). NULL with OutOfMemoryError
 * raised. The handle is that of the call: the function object itself is not passed. */
dso_function *module_function_new(dso_module *module, dso_safe_call call, void *handle);

/* The same, but `call` gets the function object, as code of libraries expects: no step between the
 * caller and the code. */
dso_function *module_function_of_code(dso_module *module, dso_safe_call code);

/* Call `visit` depth first in import order, each module once; stops at a nonzero value and returns
 * it, or 0, or -1 with OutOfMemoryError raised. No recursion. If `visit` returns MODULE_VISIT_LEAF,
 * the walk goes on, but not to the imports of that module. */
enum { MODULE_VISIT_LEAF = 1 << 30 };
int module_visit(dso_module *root, int (*visit)(void *context, dso_module *module), void *context);

/* ---- Loaders of type keys (loaders.h) */

/* Read a payload. Returns 0 with an owned module, or -1 with the error raised. */
typedef int (*module_loader)(struct reader *reader, struct span type_key, dso_module **module);

/* Check that dso_options.devices of the module's load allow a device. Returns 0, or -1 with
 * DeviceError raised. */
int device_check_allowed(const dso_module *module, DLDevice device);
