/* The OpenCL devices of this process: opencl:0, opencl:1, ... No Python.h.
 *
 * Of all platforms, GPUs first, then accelerators, then CPUs; in a platform's own order. They are
 * listed once, at the first use. Each gets a context and one in-order queue of its own, which all
 * threads share, so that work on a device is done in the order in which it was asked for. */
#ifndef DSO_PACKER_DEVICE_OPENCL_DEVICE_H
#define DSO_PACKER_DEVICE_OPENCL_DEVICE_H

#include "device/opencl/driver.h"

struct opencl_device {
  const struct opencl_driver *driver;
  int index;
  cl_device_id id;
  char name[128];
  cl_context context;
  cl_command_queue queue;
  size_t alignment;      /* of buffers and sub-buffers, in bytes */
  size_t max_block[3];   /* work-items of a work-group along each dimension */
  cl_ulong local_nbytes; /* of a work-group's memory */
};

/* The device, ready for work; NULL with a DeviceError raised. */
const struct opencl_device *opencl_device(int index);

/* Whether this process was forked from one that used OpenCL: nothing of the driver works in it,
 * and most of it would hang. */
int opencl_is_after_fork(void);

#endif
