/* Modules of kernels, their bindings to devices, and kernels as Function objects. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "device/kernel.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device_api.h"
#include "abi/heap.h"

static const struct kernel_driver *const drivers[] = {&opencl_kernel_driver, &cuda_kernel_driver};

const struct kernel_driver *kernel_driver(const char *type_key) {
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
    if (strcmp(drivers[i]->type_key, type_key) == 0) return drivers[i];
  return NULL;
}

/* ---- Modules */

struct kernel_module *kernel_module_new(const struct kernel_driver *driver, const char *fmt,
                                        const void *data, size_t nbytes) {
  struct kernel_module *module = heap_new_zeroed(1, sizeof *module);
  char *own_fmt = heap_copy_text(fmt);
  if (module == NULL || own_fmt == NULL) {
    free(module);
    free(own_fmt);
    return NULL;
  }
  atomic_init(&module->references, 1);
  module->driver = driver;
  module->fmt = own_fmt;
  module->data = data;
  module->nbytes = nbytes;
  pthread_mutex_init(&module->lock, NULL);
  return module;
}

void kernel_module_forget(struct kernel_module *module) {
  pthread_mutex_lock(&module->lock);
  module->data = NULL;
  pthread_mutex_unlock(&module->lock);
}

static void free_bindings(struct kernel_binding *binding,
                          void (*release)(struct kernel_binding *binding)) {
  while (binding != NULL) {
    struct kernel_binding *next = binding->next;
    release(binding);
    binding = next;
  }
}

void kernel_module_release(struct kernel_module *module) {
  if (atomic_fetch_sub(&module->references, 1) != 1) return;
  free_bindings(module->programs, module->driver->unload);
  pthread_mutex_destroy(&module->lock);
  free(module->fmt);
  free(module);
}

/* ---- Bindings: added at the front and never removed while the kernel lives, so that a launch
 * finds its binding without a lock. */

struct kernel_binding *kernel_binding_find(struct kernel_binding *binding, int device_id) {
  while (binding != NULL && binding->device_id != device_id) binding = binding->next;
  return binding;
}

static struct kernel_binding *bind_first(struct kernel *kernel, int device_id) {
  struct kernel_binding *first = atomic_load(&kernel->bindings);
  struct kernel_binding *binding = kernel_binding_find(first, device_id);
  if (binding != NULL) return binding; /* another thread bound it first */
  if (kernel->module->data == NULL) {
    kernel_error(&kernel->signature, "DeviceError",
                 "not yet built for %s:%d, and the module that holds its code has been freed",
                 kernel->module->driver->type_key, device_id);
    return NULL;
  }
  binding = kernel->module->driver->bind(kernel, device_id);
  if (binding == NULL) return NULL;
  binding->device_id = device_id;
  binding->next = first;
  atomic_store_explicit(&kernel->bindings, binding, memory_order_release);
  return binding;
}

struct kernel_binding *kernel_bind(struct kernel *kernel, int device_id) {
  struct kernel_binding *first = atomic_load_explicit(&kernel->bindings, memory_order_acquire);
  struct kernel_binding *binding = kernel_binding_find(first, device_id);
  if (binding != NULL) return binding;
  pthread_mutex_lock(&kernel->module->lock);
  binding = bind_first(kernel, device_id);
  pthread_mutex_unlock(&kernel->module->lock);
  return binding;
}

/* ---- Kernels */

int kernel_device_error(const struct kernel *kernel, int device_id, const char *format, ...) {
  DLDevice device = {.device_type = kernel->signature.device_type, .device_id = device_id};
  char text[1024];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return device_error(device, 0, "kernel '%.200s': %s", kernel->signature.name, text);
}

static int call_packed(struct kernel *kernel, const dso_any *args, int32_t count, char *packed) {
  struct kernel_launch launch;
  if (kernel_pack(&kernel->signature, args, count, packed, &launch) != 0) return -1;
  return kernel->module->driver->launch(kernel, packed, &launch);
}

/* The safe call. Its result stays None. */
static int call(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  struct kernel *kernel = handle;
  _Alignas(8) char stack[512];
  (void)result;
  if (kernel->signature.packed_nbytes <= sizeof stack)
    return call_packed(kernel, args, count, stack);
  char *heap = heap_new(kernel->signature.packed_nbytes);
  if (heap == NULL)
    return kernel_error(&kernel->signature, "OutOfMemoryError", "no memory for a call");
  int status = call_packed(kernel, args, count, heap);
  free(heap);
  return status;
}

static void delete_kernel(void *self, int flags) {
  struct kernel *kernel = self;
  if (flags & DSO_DELETE_STRONG) {
    free_bindings(atomic_load(&kernel->bindings), kernel->module->driver->unbind);
    kernel_module_release(kernel->module);
    kernel_signature_clear(&kernel->signature);
  }
  object_free(self, flags);
}

dso_object *kernel_new(struct kernel_module *module, const struct kernel_signature *signature) {
  struct kernel *kernel = object_new(sizeof *kernel, DSO_FUNCTION, delete_kernel);
  if (kernel == NULL) {
    struct kernel_signature unused = *signature;
    kernel_signature_clear(&unused);
    return NULL;
  }
  kernel->function.safe_call = call;
  kernel->signature = *signature;
  kernel->module = module;
  atomic_fetch_add(&module->references, 1);
  atomic_init(&kernel->bindings, NULL);
  return &kernel->function.object;
}
