/* The functions of libOpenCL.so.1, and OpenCL's errors. */
#define _GNU_SOURCE /* vasprintf */
#include "device/opencl/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device_api.h"
#include "device/driver_library.h"

const char opencl_remedy[] =
    "install one (Debian: ocl-icd-libopencl1 and the device's driver, for example pocl-opencl-icd "
    "for the CPU; without root: pip install intel-opencl-rt, and set LD_LIBRARY_PATH and "
    "OCL_ICD_FILENAMES, see docs/devices.md)";

static struct opencl_driver driver;

static const struct driver_function functions[] = {
#define OPENCL_NEEDED(name, result, parameters) {#name, offsetof(struct opencl_driver, name), 0},
    OPENCL_REQUIRED(OPENCL_NEEDED)
#undef OPENCL_NEEDED
#define OPENCL_TRIED(name, result, parameters) {#name, offsetof(struct opencl_driver, name), 1},
        OPENCL_OPTIONAL(OPENCL_TRIED)
#undef OPENCL_TRIED
};

static struct driver_library library = {
    .file = "libOpenCL.so.1",
    .kind = "OpenCL",
    .oldest = "OpenCL 1.2",
    .functions = functions,
    .num_functions = sizeof functions / sizeof *functions,
    .table = &driver,
    .lock = PTHREAD_MUTEX_INITIALIZER,
};

const struct opencl_driver *opencl_driver(const char **wrong) {
  return driver_library_open(&library, wrong) == 0 ? &driver : NULL;
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
  enum {
    FIRST_HIGH = 30,
    NUM_LOW = sizeof low_codes / sizeof *low_codes,
    NUM_HIGH = sizeof high_codes / sizeof *high_codes
  };
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
               text ? text : "no memory for the error message", opencl_code_name(code));
  free(text);
  return -1;
}
