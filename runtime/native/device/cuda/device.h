/* CUDA devices, numbered as by the driver (CUDA_VISIBLE_DEVICES included). The core uses each
 * device's primary context, as PyTorch and the CUDA runtime do, and its legacy default stream, so
 * work runs in the order of the calls. */
#pragma once

#include "device/cuda/driver.h"

struct cuda_device {
  const struct cuda_driver *driver;
  int index;
  CUdevice id;
  char name[128];
  int capability;     /* 90 for 9.0 */
  int driver_version; /* 12040 for 12.4 */
  CUcontext context;
  int max_block[3], max_grid[3];
  int shared_nbytes; /* per block, if the kernel opts in */
};

/* The device, ready for work; NULL with a DeviceError raised. */
const struct cuda_device *cuda_device(int index);

/* Return 1 if this process was forked from a process that used CUDA: no function of the driver
 * works in it. */
int cuda_is_after_fork(void);

/* The state that cuda_leave restores. */
struct cuda_scope {
  const struct cuda_device *device;
  int is_pushed;
};

/* Make the device's context the thread's current one until cuda_leave. A context that another
 * library made current stays below it on the stack. cuda_leave is also valid after a failure. */
CUresult cuda_enter(struct cuda_scope *scope, const struct cuda_device *device);
void cuda_leave(const struct cuda_scope *scope);
