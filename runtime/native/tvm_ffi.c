#include "tvm_ffi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static void *find_in(const char *library, const char *name) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  if (handle == NULL) return NULL;
  void *address = dlsym(handle, name);
  dlclose(handle);
  return address;
}

/* A function of the process's global scope (RTLD_DEFAULT would look in our own scope as well), else
 * of the libtvm_ffi that a library of ours brought along. It is looked up anew each time, on failure
 * only: tvm_ffi may be imported at any moment. */
static void *find(const char *name) {
  void *address = find_in(NULL, name);
  return address != NULL ? address : find_in("libtvm_ffi.so", name);
}

void tvm_ffi_forward_error(const char *kind, const char *message) {
  void (*set)(const char *kind, const char *message);
  void *address = find("TVMFFIErrorSetRaisedFromCStr");
  memcpy(&set, &address, sizeof set); /* ISO C has no cast from data to function */
  if (set != NULL) set(kind, message);
}

dso_object *tvm_ffi_take_error(void) {
  void (*move)(dso_object **error);
  dso_object *error = NULL;
  void *address = find("TVMFFIErrorMoveFromRaised");
  memcpy(&move, &address, sizeof move);
  if (move != NULL) move(&error);
  return error;
}
