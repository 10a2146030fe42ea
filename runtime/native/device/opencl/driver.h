/* The part of OpenCL that the core uses: declarations, without OpenCL's headers, and the functions
 * of libOpenCL.so.1, which is opened at the first use.
 *
 * Types and numbers: OpenCL 3.0 specification, CL/cl.h. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef struct opencl_platform_id *cl_platform_id;
typedef struct opencl_device_id *cl_device_id;
typedef struct opencl_context *cl_context;
typedef struct opencl_queue *cl_command_queue;
typedef struct opencl_memory *cl_mem;
typedef struct opencl_program_id *cl_program;
typedef struct opencl_kernel_id *cl_kernel;
typedef struct opencl_event *cl_event;

/* DLDeviceType kDLOpenCL (dlpack.h). */
enum { OPENCL_DEVICE_TYPE = 4 };

typedef struct {
  size_t origin, size;
} cl_buffer_region;

enum {
  CL_INVALID_KERNEL_NAME = -46,
  CL_PLATFORM_NOT_FOUND_KHR = -1001,

  CL_DEVICE_TYPE_CPU = 1 << 1,
  CL_DEVICE_TYPE_GPU = 1 << 2,
  CL_DEVICE_TYPE_ACCELERATOR = 1 << 3,

  CL_DEVICE_MAX_WORK_ITEM_SIZES = 0x1005,
  CL_DEVICE_MEM_BASE_ADDR_ALIGN = 0x1019, /* in bits */
  CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
  CL_DEVICE_NAME = 0x102B,
  CL_DEVICE_IL_VERSION = 0x105B,

  CL_TRUE = 1,
  CL_MEM_READ_WRITE = 1,
  CL_BUFFER_CREATE_TYPE_REGION = 0x1220,

  CL_PROGRAM_KERNEL_NAMES = 0x1168,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_KERNEL_NUM_ARGS = 0x1191,
  CL_KERNEL_ARG_ADDRESS_QUALIFIER = 0x1196,
  CL_KERNEL_ARG_TYPE_NAME = 0x1198,
  CL_KERNEL_ARG_ADDRESS_LOCAL = 0x119C,
  CL_KERNEL_ARG_ADDRESS_PRIVATE = 0x119E,
  CL_KERNEL_WORK_GROUP_SIZE = 0x11B0,
};

typedef void opencl_notify(const char *error, const void *info, size_t nbytes, void *data);
typedef void opencl_built(cl_program program, void *data);

/* Name, result, parameters. Required: in OpenCL 1.2. Optional: newer, may be missing. */
#define OPENCL_REQUIRED(X)                                                                        \
  X(clGetPlatformIDs, cl_int, (cl_uint, cl_platform_id *, cl_uint *))                             \
  X(clGetDeviceIDs, cl_int, (cl_platform_id, cl_ulong, cl_uint, cl_device_id *, cl_uint *))       \
  X(clGetDeviceInfo, cl_int, (cl_device_id, cl_uint, size_t, void *, size_t *))                   \
  X(clCreateContext, cl_context,                                                                  \
    (const intptr_t *, cl_uint, const cl_device_id *, opencl_notify *, void *, cl_int *))         \
  X(clReleaseContext, cl_int, (cl_context))                                                       \
  X(clCreateCommandQueue, cl_command_queue, (cl_context, cl_device_id, cl_ulong, cl_int *))       \
  X(clFinish, cl_int, (cl_command_queue))                                                         \
  X(clCreateBuffer, cl_mem, (cl_context, cl_ulong, size_t, void *, cl_int *))                     \
  X(clCreateSubBuffer, cl_mem, (cl_mem, cl_ulong, cl_uint, const void *, cl_int *))               \
  X(clReleaseMemObject, cl_int, (cl_mem))                                                         \
  X(clEnqueueReadBuffer, cl_int,                                                                  \
    (cl_command_queue, cl_mem, cl_uint, size_t, size_t, void *, cl_uint, const cl_event *,        \
     cl_event *))                                                                                 \
  X(clEnqueueWriteBuffer, cl_int,                                                                 \
    (cl_command_queue, cl_mem, cl_uint, size_t, size_t, const void *, cl_uint, const cl_event *,  \
     cl_event *))                                                                                 \
  X(clEnqueueCopyBuffer, cl_int,                                                                  \
    (cl_command_queue, cl_mem, cl_mem, size_t, size_t, size_t, cl_uint, const cl_event *,         \
     cl_event *))                                                                                 \
  X(clCreateProgramWithSource, cl_program,                                                        \
    (cl_context, cl_uint, const char **, const size_t *, cl_int *))                               \
  X(clCreateProgramWithBinary, cl_program,                                                        \
    (cl_context, cl_uint, const cl_device_id *, const size_t *, const unsigned char **, cl_int *, \
     cl_int *))                                                                                   \
  X(clBuildProgram, cl_int,                                                                       \
    (cl_program, cl_uint, const cl_device_id *, const char *, opencl_built *, void *))            \
  X(clGetProgramInfo, cl_int, (cl_program, cl_uint, size_t, void *, size_t *))                    \
  X(clGetProgramBuildInfo, cl_int, (cl_program, cl_device_id, cl_uint, size_t, void *, size_t *)) \
  X(clReleaseProgram, cl_int, (cl_program))                                                       \
  X(clCreateKernel, cl_kernel, (cl_program, const char *, cl_int *))                              \
  X(clGetKernelInfo, cl_int, (cl_kernel, cl_uint, size_t, void *, size_t *))                      \
  X(clGetKernelArgInfo, cl_int, (cl_kernel, cl_uint, cl_uint, size_t, void *, size_t *))          \
  X(clGetKernelWorkGroupInfo, cl_int,                                                             \
    (cl_kernel, cl_device_id, cl_uint, size_t, void *, size_t *))                                 \
  X(clSetKernelArg, cl_int, (cl_kernel, cl_uint, size_t, const void *))                           \
  X(clEnqueueNDRangeKernel, cl_int,                                                               \
    (cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *, const size_t *,        \
     cl_uint, const cl_event *, cl_event *))                                                      \
  X(clReleaseKernel, cl_int, (cl_kernel))
#define OPENCL_OPTIONAL(X) \
  X(clCreateProgramWithIL, cl_program, (cl_context, const void *, size_t, cl_int *))

struct opencl_driver {
#define OPENCL_MEMBER(name, result, parameters) result(*name) parameters;
  OPENCL_REQUIRED(OPENCL_MEMBER)
  OPENCL_OPTIONAL(OPENCL_MEMBER)
#undef OPENCL_MEMBER
};

/* The driver's functions. NULL with *wrong pointing to the reason, a text that is valid until this
 * thread's next call. Later calls are cheap; after a failure they find a driver that was installed
 * in the meantime. */
const struct opencl_driver *opencl_driver(const char **wrong);

/* How to install a driver; for messages. */
extern const char opencl_remedy[];

/* Raise "opencl:<device>: <text>: CL_NAME (code <code>)". Returns -1. */
int opencl_error(int device_id, cl_int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of a code, as "CL_OUT_OF_RESOURCES", or "an unknown code". */
const char *opencl_code_name(cl_int code);
