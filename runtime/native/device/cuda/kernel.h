/* A kernel on one CUDA device. */
#pragma once

#include "device/cuda/device.h"
#include "device/kernel.h"

struct cuda_kernel {
  struct kernel_binding binding;
  const struct cuda_device *device;
  CUfunction handle;
  int max_threads;   /* per block */
  int shared_nbytes; /* limit of dynamic shared memory */
};

/* The `launch` of the driver's table (launch.c). */
int cuda_launch(struct kernel *kernel, char *packed, struct kernel_launch *launch);
