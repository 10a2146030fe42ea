/* The functions of libOpenCL.so.1, and OpenCL's errors. */
#define _GNU_SOURCE /* vasprintf */
#include "device/opencl/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* CL/cl.h, Error Codes: 0 to -19, then -30 to -72. A NUL ends each name. */
enum { FIRST_HIGH = 30, NUM_LOW = 20, NUM_HIGH = 43 };
static const char low_codes[] =
    "CL_SUCCESS\0CL_DEVICE_NOT_FOUND\0CL_DEVICE_NOT_AVAILABLE\0CL_COMPILER_NOT_AVAILABLE\0"
    "CL_MEM_OBJECT_ALLOCATION_FAILURE\0CL_OUT_OF_RESOURCES\0CL_OUT_OF_HOST_MEMORY\0"
    "CL_PROFILING_INFO_NOT_AVAILABLE\0CL_MEM_COPY_OVERLAP\0CL_IMAGE_FORMAT_MISMATCH\0"
    "CL_IMAGE_FORMAT_NOT_SUPPORTED\0CL_BUILD_PROGRAM_FAILURE\0CL_MAP_FAILURE\0"
    "CL_MISALIGNED_SUB_BUFFER_OFFSET\0CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST\0"
    "CL_COMPILE_PROGRAM_FAILURE\0CL_LINKER_NOT_AVAILABLE\0CL_LINK_PROGRAM_FAILURE\0"
    "CL_DEVICE_PARTITION_FAILED\0CL_KERNEL_ARG_INFO_NOT_AVAILABLE\0";
static const char high_codes[] =
    "CL_INVALID_VALUE\0CL_INVALID_DEVICE_TYPE\0CL_INVALID_PLATFORM\0CL_INVALID_DEVICE\0"
    "CL_INVALID_CONTEXT\0CL_INVALID_QUEUE_PROPERTIES\0CL_INVALID_COMMAND_QUEUE\0"
    "CL_INVALID_HOST_PTR\0CL_INVALID_MEM_OBJECT\0CL_INVALID_IMAGE_FORMAT_DESCRIPTOR\0"
    "CL_INVALID_IMAGE_SIZE\0CL_INVALID_SAMPLER\0CL_INVALID_BINARY\0CL_INVALID_BUILD_OPTIONS\0"
    "CL_INVALID_PROGRAM\0CL_INVALID_PROGRAM_EXECUTABLE\0CL_INVALID_KERNEL_NAME\0"
    "CL_INVALID_KERNEL_DEFINITION\0CL_INVALID_KERNEL\0CL_INVALID_ARG_INDEX\0"
    "CL_INVALID_ARG_VALUE\0CL_INVALID_ARG_SIZE\0CL_INVALID_KERNEL_ARGS\0"
    "CL_INVALID_WORK_DIMENSION\0CL_INVALID_WORK_GROUP_SIZE\0CL_INVALID_WORK_ITEM_SIZE\0"
    "CL_INVALID_GLOBAL_OFFSET\0CL_INVALID_EVENT_WAIT_LIST\0CL_INVALID_EVENT\0"
    "CL_INVALID_OPERATION\0CL_INVALID_GL_OBJECT\0CL_INVALID_BUFFER_SIZE\0CL_INVALID_MIP_LEVEL\0"
    "CL_INVALID_GLOBAL_WORK_SIZE\0CL_INVALID_PROPERTY\0CL_INVALID_IMAGE_DESCRIPTOR\0"
    "CL_INVALID_COMPILER_OPTIONS\0CL_INVALID_LINKER_OPTIONS\0"
    "CL_INVALID_DEVICE_PARTITION_COUNT\0CL_INVALID_PIPE_SIZE\0CL_INVALID_DEVICE_QUEUE\0"
    "CL_INVALID_SPEC_ID\0CL_MAX_SIZE_RESTRICTION_EXCEEDED\0";

static const char *name_at(const char *names, int index) {
  while (index-- > 0) names += strlen(names) + 1;
  return names;
}

const char *opencl_code_name(cl_int code) {
  if (code <= 0 && code > -NUM_LOW) return name_at(low_codes, -code);
  if (code <= -FIRST_HIGH && code > -FIRST_HIGH - NUM_HIGH)
    return name_at(high_codes, -code - FIRST_HIGH);
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
