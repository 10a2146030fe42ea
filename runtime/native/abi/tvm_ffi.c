#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "abi/tvm_ffi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const char own; /* some address in the core */

/* Whoever imports extension modules with RTLD_GLOBAL makes what the core provides global, too; and
 * RTLD_DEFAULT looks in the core's own scope last. */
static int is_own(void *address) {
  Dl_info theirs, ours;
  return dladdr(address, &theirs) != 0 && dladdr(&own, &ours) != 0 &&
         theirs.dli_fbase == ours.dli_fbase;
}

/* A function of the process's global scope, else of the libtvm_ffi that a library of ours brought
 * along. It is looked up anew each time, on failure only: tvm_ffi may be imported at any moment.
 * dlopen(NULL) would find the global scope as well, but glibc aborts there in a child that was forked
 * while a thread of somebody else (PoCL's) was in dlopen. */
static void *find(const char *name) {
  void *address = dlsym(RTLD_DEFAULT, name);
  if (address != NULL && !is_own(address)) return address;
  void *library = dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return NULL;
  address = dlsym(library, name);
  dlclose(library);
  return address;
}

/* What a context of TVM FFI points to: its ModuleObj has virtual functions, so its table comes first. */
struct module {
  const void *virtual_functions;
  dso_object object;
};

/* Whether a pointer leads to a module that was made by whom `provider` lies in. It may lead anywhere,
 * so that the kernel reads what is there: process_vm_readv(2) fails where a load would crash. */
static int is_module_of(void *provider, void *pointer) {
  struct module module;
  Dl_info owner, maker;
  struct iovec here = {&module, sizeof module}, there = {pointer, sizeof module};
  if ((uintptr_t)pointer % _Alignof(struct module) != 0 ||
      process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)sizeof module)
    return 0;
  return module.object.type_index == DSO_MODULE &&
         (uint32_t)module.object.combined_ref_count != 0 && dladdr(provider, &owner) != 0 &&
         dladdr(module.virtual_functions, &maker) != 0 && owner.dli_fbase == maker.dli_fbase;
}

int tvm_ffi_look_up(void *context, const char *name, void **function, int *status) {
  int (*look_up)(void *context, const char *name, void **function);
  void *address = find("TVMFFIEnvModLookupFromImports");
  memcpy(&look_up, &address, sizeof look_up); /* ISO C has no cast from data to function */
  if (look_up == NULL || !is_module_of(address, context)) return 0;
  *status = look_up(context, name, function);
  return 1;
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
