/* The functions of libcuda.so.1, and CUDA's errors. */
#define _GNU_SOURCE /* vasprintf */
#include "device/cuda/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device_api.h"
#include "device/driver_library.h"

const char cuda_remedy[] =
    "install NVIDIA's driver, which contains it (in a container: start the container with --gpus "
    "all); the toolkit is not required";

static struct cuda_driver driver;

static const struct driver_function functions[] = {
#define CUDA_NEEDED(name, parameters) {#name, offsetof(struct cuda_driver, name), 0},
    CUDA_REQUIRED(CUDA_NEEDED)
#undef CUDA_NEEDED
#define CUDA_TRIED(name, parameters) {#name, offsetof(struct cuda_driver, name), 1},
        CUDA_OPTIONAL(CUDA_TRIED)
#undef CUDA_TRIED
};

static struct driver_library library = {
    .file = "libcuda.so.1",
    .kind = "CUDA driver",
    .oldest = "the driver of CUDA 11",
    .functions = functions,
    .num_functions = sizeof functions / sizeof *functions,
    .table = &driver,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

const struct cuda_driver *cuda_driver(const char **wrong) {
  return driver_library_open(&library, wrong) == 0 ? &driver : NULL;
}

/* ---- Errors */

/* Return 1 if every later call of the process fails (cuda.h, at each of these codes). */
static int is_lost(CUresult code) {
  return code == CUDA_ERROR_ECC_UNCORRECTABLE || code == CUDA_ERROR_ILLEGAL_ADDRESS ||
         code == CUDA_ERROR_LAUNCH_TIMEOUT ||
         (code >= CUDA_ERROR_ASSERT && code <= CUDA_ERROR_LAUNCH_FAILED);
}

static const char *remedy_of(CUresult code) {
  if (is_lost(code))
    return "; the data on the device is lost; restart the process to use the device again";
  switch (code) {
    case CUDA_ERROR_OUT_OF_MEMORY: return "; free other memory, or process smaller parts";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "; update the driver, or compile for an older PTX (its .version), or to a cubin";
    default: return "";
  }
}

/* Get name and text of a code from the driver, which also knows newer codes. */
static void name_code(CUresult code, const char **name, const char **text) {
  *name = *text = NULL;
  if (!driver_library_is_open(&library)) return;
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
               text ? text : "no memory for the error message", name ? name : "an unknown code",
               meaning ? ", " : "", meaning ? meaning : "", remedy_of(code));
  free(text);
  return -1;
}
