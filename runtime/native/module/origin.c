/* The origin of modules: its end, and the functions that were looked up. */
#include "module/origin.h"

#include <stdlib.h>
#include <string.h>

#include "device/device_api.h"
#include "abi/dlpack.h"
#include "abi/heap.h"
#include "abi/raised.h"

static void end_origin(struct ending *ending) {
  struct origin *self = (struct origin *)(void *)((char *)ending - offsetof(struct origin, ending));
  self->type->close(self);
  for (size_t i = 0; i < ORIGIN_BUCKETS; i++)
    while (self->functions[i] != NULL) {
      struct host_function *function = self->functions[i];
      self->functions[i] = function->next;
      found_function_free(&function->found);
      free(function);
    }
  free(self->path);
  free((void *)(uintptr_t)self->options.devices);
  object_free(self, DSO_DELETE_WEAK);
}

/* No weak references: the object never leaves the core. */
static void delete_origin(void *object, int flags) {
  struct origin *self = object;
  if (flags == (DSO_DELETE_STRONG | DSO_DELETE_WEAK)) end_in_turn(&self->ending, end_origin);
}

static void close_nothing(struct origin *self) { (void)self; }

static const struct origin_type unopened = {.close = close_nothing};

static int copy_options(struct origin *self, const struct load_options *options) {
  size_t nbytes = (size_t)options->num_devices * sizeof *options->devices;
  self->options = *options;
  self->options.devices = NULL;
  if (options->devices == NULL) return 0;
  DLDevice *devices = heap_new(nbytes + 1);
  if (devices == NULL) return -1;
  if (nbytes > 0) memcpy(devices, options->devices, nbytes);
  self->options.devices = devices;
  return 0;
}

void *origin_new(size_t nbytes, const char *path, const struct load_options *options) {
  struct origin *self = object_new(nbytes, DSO_OBJECT, delete_origin);
  if (self != NULL) {
    self->type = &unopened;
    self->path = heap_copy_text(path);
    if (self->path != NULL && copy_options(self, options) == 0) return self;
    object_release(&self->object);
  }
  return raised_null("OutOfMemoryError", "%s: no memory for a loaded library", path);
}

struct origin *origin_of(const dso_module *module) {
  dso_object *owner = module->owner;
  return owner != NULL && owner->deleter == delete_origin ? (struct origin *)(void *)owner : NULL;
}

const char *module_where(const dso_module *module) {
  const struct origin *origin = origin_of(module);
  return origin != NULL ? origin->path : module->type_key;
}

static int device_is_allowed(const dso_module *module, DLDevice device) {
  const struct origin *origin = origin_of(module);
  if (origin == NULL || origin->options.devices == NULL || device.device_type == DLPACK_CPU)
    return 1;
  for (int i = 0; i < origin->options.num_devices; i++) {
    const DLDevice *allowed = &origin->options.devices[i];
    if (allowed->device_type == device.device_type && allowed->device_id == device.device_id)
      return 1;
  }
  return 0;
}

int device_check_allowed(const dso_module *module, DLDevice device) {
  if (device_is_allowed(module, device)) return 0;
  return device_error(device, 0, "not among the devices that dso_options allows this library");
}

/* ---- Functions that were looked up */

int is_function_name(const char *name) {
  for (; *name != '\0'; name++)
    if (*name < ' ' || *name > '~') return 0;
  return 1;
}

static struct host_function **bucket_of(struct origin *self, const char *name) {
  uint32_t hash = 2166136261; /* FNV-1a */
  for (; *name != '\0'; name++) hash = (hash ^ (unsigned char)*name) * 16777619;
  return &self->functions[(hash ^ hash >> 16) % ORIGIN_BUCKETS];
}

/* A new function, or NULL with *status 0, or -1 and the error raised. */
static struct host_function *look_up(const struct origin *origin, const char *name, int *status) {
  struct found_function found;
  struct load_error error;
  *status = is_function_name(name) ? origin->type->function(origin, name, &found, &error) : 0;
  if (*status < 0)
    *status = raised_format(load_error_kind(&error), "%s: %s", origin->path, error.message);
  if (*status <= 0) return NULL;
  size_t size = strlen(name) + 1;
  struct host_function *self = heap_new_zeroed(1, sizeof *self + size);
  if (self == NULL) {
    found_function_free(&found);
    *status = raised_format("OutOfMemoryError", "%s: no memory for a function", origin->path);
    return NULL;
  }
  memcpy(self->name, name, size);
  self->origin = origin;
  self->found = found;
  return self;
}

/* Two threads may add the same name; then either is found. */
int origin_function(struct origin *self, const char *name, const struct host_function **found) {
  struct host_function **bucket = bucket_of(self, name);
  struct host_function *first = __atomic_load_n(bucket, __ATOMIC_ACQUIRE), *function = first;
  int status = 1;
  while (function != NULL && strcmp(function->name, name) != 0) function = function->next;
  *found = function;
  if (function != NULL || (function = look_up(self, name, &status)) == NULL) return status;
  function->next = first;
  while (!__atomic_compare_exchange_n(bucket, &function->next, function, 0, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED))
    continue;
  *found = function;
  return 1;
}
