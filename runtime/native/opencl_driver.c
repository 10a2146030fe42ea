#define _GNU_SOURCE /* vasprintf */
#include "opencl_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device_api.h"

static const char LIBRARY[] = "libOpenCL.so.1";

const char opencl_remedy[] =
    "install one (Debian: ocl-icd-libopencl1 and the device's driver, as pocl-opencl-icd for the "
    "CPU; without root: pip install intel-opencl-rt, and let LD_LIBRARY_PATH and OCL_ICD_FILENAMES "
    "name it, see docs/devices.md)";

static struct opencl_driver driver;
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
#define OPENCL_FIND(name, result, parameters) \
  if (!find(library, #name, &driver.name, sizeof driver.name)) return #name;
  OPENCL_REQUIRED(OPENCL_FIND)
#undef OPENCL_FIND
#define OPENCL_TRY(name, result, parameters) \
  (void)find(library, #name, &driver.name, sizeof driver.name);
  OPENCL_OPTIONAL(OPENCL_TRY)
#undef OPENCL_TRY
  return NULL;
}

/* With the lock held. The library is never closed: its drivers have threads. */
static const char *open_library(void) {
  static _Thread_local char text[512];
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *why = dlerror();
    snprintf(text, sizeof text, "no OpenCL is here: %s", why ? why : LIBRARY);
    return text;
  }
  const char *missing = find_all(library);
  if (missing == NULL) {
    atomic_store_explicit(&is_open, 1, memory_order_release);
    return NULL;
  }
  snprintf(text, sizeof text, "%s is too old, expected OpenCL 1.2 or newer: it has no %s", LIBRARY,
           missing);
  dlclose(library);
  return text;
}

const struct opencl_driver *opencl_driver(const char **wrong) {
  if (atomic_load_explicit(&is_open, memory_order_acquire)) return &driver;
  pthread_mutex_lock(&lock);
  *wrong = atomic_load(&is_open) ? NULL : open_library();
  pthread_mutex_unlock(&lock);
  return *wrong == NULL ? &driver : NULL;
}

/* CL/cl.h, Error Codes: 0 to -19, then -30 to -72. */
static const char *const low_codes[] = {
    "CL_SUCCESS",
    "CL_DEVICE_NOT_FOUND",
    "CL_DEVICE_NOT_AVAILABLE",
    "CL_COMPILER_NOT_AVAILABLE",
    "CL_MEM_OBJECT_ALLOCATION_FAILURE",
    "CL_OUT_OF_RESOURCES",
    "CL_OUT_OF_HOST_MEMORY",
    "CL_PROFILING_INFO_NOT_AVAILABLE",
    "CL_MEM_COPY_OVERLAP",
    "CL_IMAGE_FORMAT_MISMATCH",
    "CL_IMAGE_FORMAT_NOT_SUPPORTED",
    "CL_BUILD_PROGRAM_FAILURE",
    "CL_MAP_FAILURE",
    "CL_MISALIGNED_SUB_BUFFER_OFFSET",
    "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST",
    "CL_COMPILE_PROGRAM_FAILURE",
    "CL_LINKER_NOT_AVAILABLE",
    "CL_LINK_PROGRAM_FAILURE",
    "CL_DEVICE_PARTITION_FAILED",
    "CL_KERNEL_ARG_INFO_NOT_AVAILABLE",
};
static const char *const high_codes[] = {
    "CL_INVALID_VALUE",
    "CL_INVALID_DEVICE_TYPE",
    "CL_INVALID_PLATFORM",
    "CL_INVALID_DEVICE",
    "CL_INVALID_CONTEXT",
    "CL_INVALID_QUEUE_PROPERTIES",
    "CL_INVALID_COMMAND_QUEUE",
    "CL_INVALID_HOST_PTR",
    "CL_INVALID_MEM_OBJECT",
    "CL_INVALID_IMAGE_FORMAT_DESCRIPTOR",
    "CL_INVALID_IMAGE_SIZE",
    "CL_INVALID_SAMPLER",
    "CL_INVALID_BINARY",
    "CL_INVALID_BUILD_OPTIONS",
    "CL_INVALID_PROGRAM",
    "CL_INVALID_PROGRAM_EXECUTABLE",
    "CL_INVALID_KERNEL_NAME",
    "CL_INVALID_KERNEL_DEFINITION",
    "CL_INVALID_KERNEL",
    "CL_INVALID_ARG_INDEX",
    "CL_INVALID_ARG_VALUE",
    "CL_INVALID_ARG_SIZE",
    "CL_INVALID_KERNEL_ARGS",
    "CL_INVALID_WORK_DIMENSION",
    "CL_INVALID_WORK_GROUP_SIZE",
    "CL_INVALID_WORK_ITEM_SIZE",
    "CL_INVALID_GLOBAL_OFFSET",
    "CL_INVALID_EVENT_WAIT_LIST",
    "CL_INVALID_EVENT",
    "CL_INVALID_OPERATION",
    "CL_INVALID_GL_OBJECT",
    "CL_INVALID_BUFFER_SIZE",
    "CL_INVALID_MIP_LEVEL",
    "CL_INVALID_GLOBAL_WORK_SIZE",
    "CL_INVALID_PROPERTY",
    "CL_INVALID_IMAGE_DESCRIPTOR",
    "CL_INVALID_COMPILER_OPTIONS",
    "CL_INVALID_LINKER_OPTIONS",
    "CL_INVALID_DEVICE_PARTITION_COUNT",
    "CL_INVALID_PIPE_SIZE",
    "CL_INVALID_DEVICE_QUEUE",
    "CL_INVALID_SPEC_ID",
    "CL_MAX_SIZE_RESTRICTION_EXCEEDED",
};

const char *opencl_code_name(cl_int code) {
  enum { FIRST_HIGH = 30, NUM_LOW = sizeof low_codes / sizeof *low_codes,
         NUM_HIGH = sizeof high_codes / sizeof *high_codes };
  if (code <= 0 && code > -NUM_LOW) return low_codes[-code];
  if (code <= -FIRST_HIGH && code > -FIRST_HIGH - NUM_HIGH) return high_codes[-code - FIRST_HIGH];
  return code == CL_PLATFORM_NOT_FOUND_KHR ? "CL_PLATFORM_NOT_FOUND_KHR" : "an unknown code";
}

int opencl_error(int device_id, cl_int code, const char *format, ...) {
  char *text = NULL;
  va_list values;
  va_start(values, format);
  if (vasprintf(&text, format, values) < 0) text = NULL;
  va_end(values);
  device_error((DLDevice){OPENCL_DEVICE_TYPE, device_id}, code, "%s: %s",
               text ? text : "no memory to say what went wrong", opencl_code_name(code));
  free(text);
  return -1;
}
