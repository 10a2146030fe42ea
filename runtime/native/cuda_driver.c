#define _GNU_SOURCE /* vasprintf */
#include "cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_api.h"

static const char LIBRARY[] = "libcuda.so.1";

const char cuda_remedy[] =
    "install NVIDIA's driver, which has it (in a container: start it with the GPU, as "
    "--gpus all does); no toolkit is needed";

static struct cuda_driver driver;
static atomic_int is_open;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ISO C has no cast from data to function. */
static int find(void *library, const char *name, void *function, size_t nbytes) {
  void *address = dlsym(library, name);
  memcpy(function, &address, nbytes);
  return address != NULL;
}

/* The name of the first function that is missing, or NULL. */
static const char *find_all(void *library) {
#define CUDA_FIND(name, parameters) \
  if (!find(library, #name, &driver.name, sizeof driver.name)) return #name;
  CUDA_REQUIRED(CUDA_FIND)
#undef CUDA_FIND
#define CUDA_TRY(name, parameters) (void)find(library, #name, &driver.name, sizeof driver.name);
  CUDA_OPTIONAL(CUDA_TRY)
#undef CUDA_TRY
  return NULL;
}

/* With the lock held. The library is never closed: it has threads. */
static const char *open_library(void) {
  static _Thread_local char text[512];
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *why = dlerror();
    snprintf(text, sizeof text, "no CUDA driver is here: %s", why ? why : LIBRARY);
    return text;
  }
  const char *missing = find_all(library);
  if (missing == NULL) {
    atomic_store_explicit(&is_open, 1, memory_order_release);
    return NULL;
  }
  snprintf(text, sizeof text, "%s is too old, expected that of CUDA 11 or newer: it has no %s",
           LIBRARY, missing);
  dlclose(library);
  return text;
}

const struct cuda_driver *cuda_driver(const char **wrong) {
  if (atomic_load_explicit(&is_open, memory_order_acquire)) return &driver;
  pthread_mutex_lock(&lock);
  *wrong = atomic_load(&is_open) ? NULL : open_library();
  pthread_mutex_unlock(&lock);
  return *wrong == NULL ? &driver : NULL;
}

/* ---- Errors */

/* From here on every call of the process fails (cuda.h, at each of these codes). */
static int is_lost(CUresult code) {
  return code == CUDA_ERROR_ECC_UNCORRECTABLE || code == CUDA_ERROR_ILLEGAL_ADDRESS ||
         code == CUDA_ERROR_LAUNCH_TIMEOUT ||
         (code >= CUDA_ERROR_ASSERT && code <= CUDA_ERROR_LAUNCH_FAILED);
}

static const char *remedy_of(CUresult code) {
  if (is_lost(code))
    return "; what was on the device is lost, and this process cannot use it any more";
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY: return "; free others, or work in parts";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "; update the driver, or compile for an older PTX (its .version), or to a cubin";
    default: return "";
  }
}

/* Both are asked of the driver, which knows its own codes best. */
static void name_code(CUresult code, const char **name, const char **text) {
  *name = *text = NULL;
  if (!atomic_load_explicit(&is_open, memory_order_acquire)) return;
  if (driver.cuGetErrorName(code, name) != 0) *name = NULL;
  if (driver.cuGetErrorString(code, text) != 0) *text = NULL;
}

int cuda_error(int device_id, CUresult code, const char *format, ...) {
  const char *name, *meaning;
  char *text = NULL;
  va_list values;
  va_start(values, format);
  if (vasprintf(&text, format, values) < 0) text = NULL;
  va_end(values);
  name_code(code, &name, &meaning);
  device_error((DLDevice){CUDA_DEVICE_TYPE, device_id}, code, "%s: %s%s%s%s",
               text ? text : "no memory to say what went wrong", name ? name : "an unknown code",
               meaning ? ", " : "", meaning ? meaning : "", remedy_of(code));
  free(text);
  return -1;
}
