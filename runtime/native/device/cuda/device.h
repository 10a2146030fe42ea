/* CUDA devices by number, as the driver counts them (CUDA_VISIBLE_DEVICES included). Each is used
 * by its primary context, which PyTorch and all of CUDA's runtime use too, and by the legacy
 * default stream: work is done in the order in which it was asked for. No Python.h. */
#ifndef DSO_PACKER_DEVICE_CUDA_DEVICE_H
#define DSO_PACKER_DEVICE_CUDA_DEVICE_H

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
  int shared_nbytes; /* of a block, when its kernel opts in */
};

/* The device, ready for work; NULL with a DeviceError raised. */
const struct cuda_device *cuda_device(int index);

/* Whether this process was forked from one that used CUDA: nothing of the driver works in it. */
int cuda_is_after_fork(void);

/* What cuda_leave puts right. */
struct cuda_scope {
  const struct cuda_device *device;
  int is_pushed;
};

/* Make the device's context the thread's current one until cuda_leave; what another library has
 * made current stays untouched below it. Leaving is right after a failure, too. */
CUresult cuda_enter(struct cuda_scope *scope, const struct cuda_device *device);
void cuda_leave(const struct cuda_scope *scope);

#endif
