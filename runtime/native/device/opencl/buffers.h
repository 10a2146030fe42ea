/* The buffers that the core allocated on OpenCL devices. A pointer that is not in this table is
 * rejected before a driver dereferences it. */
#pragma once

#include "device/opencl/driver.h"

struct opencl_buffer {
  cl_mem memory;
  int device_id;
  size_t nbytes;
};

/* Return 1 and fill *buffer if `data` is in the table. A buffer of another library cannot be used:
 * it belongs to another context. */
int opencl_find_buffer(const void *data, struct opencl_buffer *buffer);

/* Returns 0, or -1 if memory is exhausted. */
int opencl_buffers_add(const struct opencl_buffer *buffer);

/* Remove a buffer of this device. Returns 1 if it was in the table. */
int opencl_buffers_remove(const void *data, int device_id);
