/* A kernel on one OpenCL device. No Python.h. */
#ifndef DSO_PACKER_DEVICE_OPENCL_KERNEL_H
#define DSO_PACKER_DEVICE_OPENCL_KERNEL_H

#include "device/kernel.h"
#include "device/opencl/device.h"

struct opencl_kernel {
  struct kernel_binding binding;
  const struct opencl_device *device;
  cl_kernel handle;
  pthread_mutex_t lock; /* clSetKernelArg is for one thread at a time */
  size_t max_group;     /* work-items of one work-group */
  int has_local;        /* one __local argument stands behind the signature's */
};

/* Compare the signature with what the code takes, as far as the driver tells, and find out
 * has_local; 0, or -1 with a DeviceError raised. (opencl_parameters.c) */
int opencl_check_parameters(const struct kernel *kernel, struct opencl_kernel *bound);

/* The driver table's launch. (opencl_launch.c) */
int opencl_launch(struct kernel *kernel, char *packed, struct kernel_launch *launch);

#endif
