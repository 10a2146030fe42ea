/* What the core has in files with Python.h, and most drivers of the rest never reach. */
#include <stdlib.h>

#include "python/imports.h"
#include "library/provided.h"

/* Weak: a driver may have its own. */
__attribute__((weak)) void *imports_find(struct context *context, const char *name) {
  (void)context, (void)name;
  abort();
}

void imports_forget(struct context *context) { (void)context; }

int TVMFFIHandleInitOnce(void **handle, int (*init)(void **result)) {
  (void)handle, (void)init;
  abort();
}
