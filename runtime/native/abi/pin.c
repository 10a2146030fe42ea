/* Keeping the core mapped. */
#define _GNU_SOURCE /* dladdr */
#include "abi/pin.h"

#include <dlfcn.h>

void pin_core(void) {
  static const char here;
  Dl_info core;
  if (dladdr(&here, &core) == 0) return;
  /* The handle stays open too; musl relies on that. */
  (void)dlopen(core.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}
