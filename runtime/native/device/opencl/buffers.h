/* Buffers on OpenCL devices: each that we allocated is known, so that a stray pointer is refused
 * before a driver follows it. No Python.h. */
#ifndef DSO_PACKER_DEVICE_OPENCL_BUFFERS_H
#define DSO_PACKER_DEVICE_OPENCL_BUFFERS_H

#include "device/opencl/driver.h"

struct opencl_buffer {
  cl_mem memory;
  int device_id;
  size_t nbytes;
};

/* Whether `data` is one of them; then *buffer is filled. A buffer of anyone else's would be of no
 * use here: its context is not ours. */
int opencl_find_buffer(const void *data, struct opencl_buffer *buffer);

/* 0, or -1 without memory. */
int opencl_buffers_add(const struct opencl_buffer *buffer);

/* Forget one of this device: whether it was known. */
int opencl_buffers_remove(const void *data, int device_id);

#endif
