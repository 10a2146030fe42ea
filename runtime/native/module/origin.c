/* The origin of modules: its end, and what it says about them. */
#include "module/origin.h"

#include <stdlib.h>

#include "device/device_api.h"
#include "abi/dlpack.h"
#include "abi/heap.h"
#include "abi/raised.h"

static void end_origin(struct ending *ending) {
  struct origin *self = (struct origin *)(void *)((char *)ending - offsetof(struct origin, ending));
  self->type->close(self);
  free(self->path);
  free(self->options.devices);
  object_free(self, DSO_DELETE_WEAK);
}

/* No weak references: the object never leaves this folder. */
static void delete_origin(void *object, int flags) {
  struct origin *self = object;
  if (flags == (DSO_DELETE_STRONG | DSO_DELETE_WEAK)) end_in_turn(&self->ending, end_origin);
}

static void close_nothing(struct origin *self) { (void)self; }

static const struct origin_type unopened = {.close = close_nothing};

void *origin_new(size_t nbytes, const char *path) {
  struct origin *self = object_new(nbytes, DSO_OBJECT, delete_origin);
  if (self != NULL) {
    self->type = &unopened;
    self->path = heap_copy_text(path);
    self->options.allows_all = 1;
    if (self->path != NULL) return self;
    object_release(&self->object);
  }
  (void)raised_format("OutOfMemoryError", "%s: no memory for a loaded library", path);
  return NULL;
}

struct origin *origin_of(const dso_module *module) {
  dso_object *owner = module->owner;
  return owner != NULL && owner->deleter == delete_origin ? (struct origin *)(void *)owner : NULL;
}

const char *module_where(const dso_module *module) {
  const struct origin *origin = origin_of(module);
  return origin != NULL ? origin->path : module->type_key;
}

int device_is_allowed(const dso_module *module, DLDevice device) {
  const struct origin *origin = origin_of(module);
  if (origin == NULL || origin->options.allows_all || device.device_type == DLPACK_CPU) return 1;
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
