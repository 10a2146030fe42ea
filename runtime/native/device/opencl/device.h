/* The OpenCL devices of this process: opencl:0, opencl:1, ...
 *
 * They are listed once, at the first use, over all platforms: GPUs first, then accelerators, then
 * CPUs, each in the platform's order. Each device has one context and one in-order queue, which all
 * threads share, so work on a device runs in the order of the calls. */
#pragma once

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
  cl_ulong local_nbytes; /* local memory of a work-group */
};

/* The device, ready for work; NULL with a DeviceError raised. */
const struct opencl_device *opencl_device(int index);

/* Return 1 if this process was forked from a process that used OpenCL: the driver's functions do
 * not work in it, and most would hang. */
int opencl_is_after_fork(void);
