/* Loading a module's code on a CUDA device. */
#include "device/cuda/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/image.h"
#include "device/device_api.h"
#include "abi/heap.h"

enum { LOG_NBYTES = 1 << 14, SHOWN = 512 };

struct program {
  struct kernel_binding binding;
  const struct cuda_device *device;
  CUmodule handle;
};

static void *fail(const struct cuda_device *device, const char *text) {
  device_error((DLDevice){CUDA_DEVICE_TYPE, device->index}, 0,
               "'%s' (sm_%d, driver of CUDA %d.%d): %s", device->name, device->capability,
               device->driver_version / 1000, device->driver_version % 1000 / 10, text);
  return NULL;
}

/* ---- Loading one image */

/* A numeric option value, passed as a pointer (cuda.h, cuModuleLoadDataEx). */
static void *number_option(size_t number) { return (void *)(uintptr_t)number; }

static CUmodule load_with_log(const struct cuda_device *device, const void *data,
                              const char *inside, char *log) {
  int names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, number_option(LOG_NBYTES - 1)};
  CUmodule loaded = NULL;
  CUresult code = device->driver->cuModuleLoadDataEx(&loaded, data, 2, names, values);
  if (code == 0) return loaded;
  for (size_t end = strlen(log); end > 0 && log[end - 1] == '\n';) log[--end] = '\0';
  cuda_error(device->index, code,
             "'%s' (sm_%d, driver of CUDA %d.%d) rejected code for %s; its log:\n%s\n",
             device->name, device->capability, device->driver_version / 1000,
             device->driver_version % 1000 / 10, inside, *log ? log : "(none)");
  return NULL;
}

static CUmodule load(const struct cuda_device *device, const void *data, const char *inside) {
  char *log = heap_new_zeroed(1, LOG_NBYTES);
  if (log == NULL) return fail(device, "no memory for its log");
  CUmodule loaded = load_with_log(device, data, inside, log);
  free(log);
  return loaded;
}

/* Load from a copy, which is aligned and ends PTX with a NUL: the driver gets no length. */
static CUmodule load_copy(const struct cuda_device *device, const void *data, size_t nbytes,
                          const char *inside) {
  char *copy = heap_new(nbytes + 1);
  if (copy == NULL) return fail(device, "no memory for code");
  memcpy(copy, data, nbytes);
  copy[nbytes] = '\0';
  CUmodule loaded = load(device, copy, inside);
  free(copy);
  return loaded;
}

/* Load one image. A compressed image is loaded as the whole fatbin, from which the driver chooses
 * the same image. */
static CUmodule load_image(const struct cuda_device *device, const struct kernel_module *module,
                           const struct cuda_image *image, const char *inside) {
  if (image->is_compressed) return load_copy(device, module->data, module->nbytes, inside);
  return load_copy(device, image->data, image->nbytes, inside);
}

/* ---- Choosing the image */

static CUmodule refuse_images(const struct cuda_device *device, const char *inside) {
  char text[SHOWN + 256];
  int capability = device->capability, oldest = capability / 10 * 10;
  snprintf(text, sizeof text,
           "the device cannot run code that was built for %s; expected a cubin for sm_%d to "
           "sm_%d, or PTX for sm_%d or less",
           inside, oldest, capability, capability);
  return fail(device, text);
}

static CUmodule refuse_bytes(const struct cuda_device *device, const struct kernel_module *module,
                             const struct cuda_images *images) {
  char text[SHOWN];
  const char *hint = strcmp(module->fmt, "cu") == 0 || strcmp(module->fmt, "cuda") == 0
                         ? "; the runtime does not compile source: pack it as ptx, cubin or fatbin"
                         : "";
  snprintf(text, sizeof text, "invalid code of format '%.40s' and %zu bytes: %s%s", module->fmt,
           module->nbytes, images->wrong, hint);
  return fail(device, text);
}

static CUmodule load_best(const struct cuda_device *device, const struct kernel_module *module,
                          struct cuda_images *images) {
  char inside[SHOWN];
  if (cuda_images_read(module->data, module->nbytes, images) != 0)
    return refuse_bytes(device, module, images);
  cuda_images_describe(images, inside, sizeof inside);
  const struct cuda_image *best = cuda_images_best(images, device->capability);
  return best ? load_image(device, module, best, inside) : refuse_images(device, inside);
}

/* Wait first: a launch may be running, and no document says that the driver keeps its code. */
static void unload(const struct program *program) {
  const struct cuda_driver *driver = program->device->driver;
  driver->cuCtxSynchronize();
  driver->cuModuleUnload(program->handle);
}

void cuda_program_unload(struct kernel_binding *binding) {
  struct program *program = (struct program *)binding;
  struct cuda_scope scope;
  if (!cuda_is_after_fork()) {
    if (cuda_enter(&scope, program->device) == 0) unload(program);
    cuda_leave(&scope);
  }
  free(program);
}

CUmodule cuda_program(struct kernel_module *module, const struct cuda_device *device) {
  struct program *program = (struct program *)kernel_binding_find(module->programs, device->index);
  if (program != NULL) return program->handle;
  program = heap_new_zeroed(1, sizeof *program);
  struct cuda_images *images = heap_new(sizeof *images);
  CUmodule handle = NULL;
  if (program != NULL && images != NULL) handle = load_best(device, module, images);
  else fail(device, "no memory for a program");
  free(images);
  if (handle == NULL) {
    free(program);
    return NULL;
  }
  *program = (struct program){
      .binding = {module->programs, device->index}, .device = device, .handle = handle};
  module->programs = &program->binding;
  return handle;
}
