#include "tvm_ffi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

/* A function of the process's global scope: RTLD_DEFAULT would look in our own scope as well. It
 * is looked up anew each time, on failure only: tvm_ffi may be imported at any moment. */
static void *find(const char *name) {
  void *process = dlopen(NULL, RTLD_NOW);
  if (process == NULL) return NULL;
  void *address = dlsym(process, name);
  dlclose(process);
  return address;
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
