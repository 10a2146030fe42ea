/* A kernel on one OpenCL device. */
#pragma once

#include "device/kernel.h"
#include "device/opencl/device.h"

struct opencl_kernel {
  struct kernel_binding binding;
  const struct opencl_device *device;
  cl_kernel handle;
  pthread_mutex_t lock; /* clSetKernelArg is not thread-safe for one kernel */
  size_t max_group;     /* work-items of one work-group */
  int has_local;        /* 1 if one __local argument follows the signature's */
};

/* Compare the signature with the parameters in the code, if the driver reports them, and set
 * has_local. Returns 0, or -1 with a DeviceError raised (parameters.c). */
int opencl_check_parameters(const struct kernel *kernel, struct opencl_kernel *bound);

/* The `launch` of the driver's table (launch.c). */
int opencl_launch(struct kernel *kernel, char *packed, struct kernel_launch *launch);
