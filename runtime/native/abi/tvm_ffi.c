/* A real libtvm_ffi in the same process: its look-ups, error slot and streams. */
#define _GNU_SOURCE /* dladdr, RTLD_DEFAULT */
#include "abi/tvm_ffi.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const char own; /* its address is in the core */

/* True if the address is in the core. An import with RTLD_GLOBAL makes the core's symbols global,
 * and RTLD_DEFAULT searches the core's own scope last. */
static int is_own(void *address) {
  Dl_info theirs, ours;
  return dladdr(address, &theirs) != 0 && dladdr(&own, &ours) != 0 &&
         theirs.dli_fbase == ours.dli_fbase;
}

/* Look up a function in the process's global scope, then in the libtvm_ffi that a loaded library
 * depends on. Not cached, because tvm_ffi may be imported at any moment; only failing calls get
 * here. dlopen(NULL) would find the global scope too, but there glibc aborts a child that was
 * forked while a thread of another library (PoCL) was in dlopen. */
static void *find(const char *name) {
  void *address = dlsym(RTLD_DEFAULT, name);
  if (address != NULL && !is_own(address)) return address;
  void *library = dlopen("libtvm_ffi.so", RTLD_NOW | RTLD_NOLOAD);
  if (library == NULL) return NULL;
  address = dlsym(library, name);
  dlclose(library);
  return address;
}

/* A context of TVM FFI points to its ModuleObj: a pointer to virtual functions, then the object. */
struct module {
  const void *virtual_functions;
  dso_object object;
};

/* True if `pointer` is a live module made by the image that contains `provider`. The pointer may be
 * invalid, so the kernel reads the memory: process_vm_readv(2) fails where a load would crash. */
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

static int read_loads(struct dl_phdr_info *info, size_t size, void *loads) {
  (void)size;
  *(unsigned long long *)loads = info->dlpi_adds;
  return 1; /* all objects have the same number */
}

/* A look-up that fails takes 10 us, too long for each launch of a kernel: it is repeated only after
 * the process has loaded another library. */
int tvm_ffi_streams(struct tvm_ffi_streams *found) {
  static _Atomic(unsigned long long) without;
  unsigned long long loads = 0;
  (void)dl_iterate_phdr(read_loads, &loads);
  if (loads == without) return 0;
  void *set = find("TVMFFIEnvSetStream"), *get = set ? find("TVMFFIEnvGetStream") : NULL;
  memcpy(&found->set, &set, sizeof set);
  memcpy(&found->get, &get, sizeof get);
  if (get == NULL) without = loads;
  return get != NULL;
}
