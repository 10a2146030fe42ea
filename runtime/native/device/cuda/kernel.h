/* A kernel on one CUDA device. No Python.h. */
#ifndef DSO_PACKER_DEVICE_CUDA_KERNEL_H
#define DSO_PACKER_DEVICE_CUDA_KERNEL_H

#include "device/cuda/device.h"
#include "device/kernel.h"

struct cuda_kernel {
  struct kernel_binding binding;
  const struct cuda_device *device;
  CUfunction handle;
  int max_threads;   /* of a block */
  int shared_nbytes; /* of dynamic shared memory */
};

/* The driver table's launch. (cuda_launch.c) */
int cuda_launch(struct kernel *kernel, char *packed, struct kernel_launch *launch);

#endif
