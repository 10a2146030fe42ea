/* The part of CUDA's driver API that the core uses: declarations, without CUDA's headers or
 * toolkit, and the functions of libcuda.so.1, which is opened at the first use.
 *
 * Types and numbers: CUDA Driver API, cuda.h. Stream functions without a suffix use the legacy
 * default stream. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t CUresult;
typedef int32_t CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct cuda_context *CUcontext;
typedef struct cuda_module *CUmodule;
typedef struct cuda_function *CUfunction;
typedef struct cuda_stream *CUstream;

/* DLDeviceType kDLCUDA (dlpack.h). */
enum { CUDA_DEVICE_TYPE = 2 };

enum {
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_DEINITIALIZED = 4,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_ECC_UNCORRECTABLE = 214,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_LAUNCH_FAILED = 719,

  CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2, /* then Y, Z, and the same for the grid */
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

  CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

/* Name and parameters; each function returns a CUresult. Required: in CUDA 11. Optional: newer, may
 * be missing. */
#define CUDA_REQUIRED(X)                                                                     \
  X(cuInit, (unsigned))                                                                      \
  X(cuDriverGetVersion, (int *))                                                             \
  X(cuGetErrorName, (CUresult, const char **))                                               \
  X(cuGetErrorString, (CUresult, const char **))                                             \
  X(cuDeviceGetCount, (int *))                                                               \
  X(cuDeviceGet, (CUdevice *, int))                                                          \
  X(cuDeviceGetName, (char *, int, CUdevice))                                                \
  X(cuDeviceGetAttribute, (int *, int, CUdevice))                                            \
  X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                       \
  X(cuCtxGetCurrent, (CUcontext *))                                                          \
  X(cuCtxPushCurrent_v2, (CUcontext))                                                        \
  X(cuCtxPopCurrent_v2, (CUcontext *))                                                       \
  X(cuCtxSynchronize, (void))                                                                \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                  \
  X(cuMemFree_v2, (CUdeviceptr))                                                             \
  X(cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                    \
  X(cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                          \
  X(cuMemcpyDtoD_v2, (CUdeviceptr, CUdeviceptr, size_t))                                     \
  X(cuMemcpyPeer, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t))                  \
  X(cuModuleLoadDataEx, (CUmodule *, const void *, unsigned, int *, void **))                \
  X(cuModuleUnload, (CUmodule))                                                              \
  X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                             \
  X(cuFuncGetAttribute, (int *, int, CUfunction))                                            \
  X(cuFuncSetAttribute, (CUfunction, int, int))                                              \
  X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     unsigned, CUstream, void **, void **))
#define CUDA_OPTIONAL(X)                                          \
  X(cuFuncGetParamInfo, (CUfunction, size_t, size_t *, size_t *)) \
  X(cuFuncGetName, (const char **, CUfunction))                   \
  X(cuModuleGetFunctionCount, (unsigned *, CUmodule))             \
  X(cuModuleEnumerateFunctions, (CUfunction *, unsigned, CUmodule))

struct cuda_driver {
#define CUDA_MEMBER(name, parameters) CUresult(*name) parameters;
  CUDA_REQUIRED(CUDA_MEMBER)
  CUDA_OPTIONAL(CUDA_MEMBER)
#undef CUDA_MEMBER
};

/* The driver's functions. NULL with *wrong pointing to the reason, a text that is valid until this
 * thread's next call. Later calls are cheap; after a failure they find a driver that was installed
 * in the meantime. */
const struct cuda_driver *cuda_driver(const char **wrong);

/* How to install the driver; for messages. */
extern const char cuda_remedy[];

/* Raise "cuda:<device>: <text>: CUDA_NAME, <the driver's text> (code <code>)", with a remedy if one
 * is known. Returns -1. */
int cuda_error(int device_id, CUresult code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
