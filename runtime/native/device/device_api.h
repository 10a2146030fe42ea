/* One table of functions per device kind: it allocates, frees and copies memory.
 *
 * Every function returns 0, or -1 with a DeviceError raised (raised.h) whose text contains the
 * device, the driver's code and a remedy. A driver is opened by the first call that needs it. */
#pragma once

#include <stddef.h>

#include "dso_abi.h"

/* An address in a device's memory. `data` may be a handle (OpenCL's cl_mem), so the offset is a
 * separate field. */
struct device_memory {
  DLDevice device;
  void *data;
  size_t offset;
};

struct device_api {
  /* Return 0 if the device exists. */
  int (*check)(int device_id);
  /* Write the driver's name of the device: NUL-terminated, truncated to `nbytes`. */
  int (*describe)(int device_id, char *text, size_t nbytes);
  /* Allocate memory that is aligned to `alignment`, a power of two. The bytes are not
   * initialised. */
  int (*alloc)(int device_id, size_t nbytes, size_t alignment, void **data);
  int (*free)(int device_id, void *data);
  /* Copy, and return when the copy is complete. At least one side is memory of this kind; the other
   * side is memory of this kind or of the CPU. */
  int (*copy)(const struct device_memory *to, const struct device_memory *from, size_t nbytes);
  /* Wait for all work that was launched on the device. */
  int (*sync)(int device_id);
};

/* The table of a DLDeviceType, or NULL with a DeviceError raised. */
const struct device_api *device_api(int device_type);

/* The name of a DLDeviceType, as "opencl"; NULL if there is no such type, as for all above
 * DEVICE_LAST_KIND. */
const char *device_kind_name(int device_type);
enum { DEVICE_LAST_KIND = 18 };

/* Raise a DeviceError "<device>: <text>", or "<device>: <text> (code <code>)" if the driver's code
 * is not 0. Returns -1. runtime/error.py parses this form. */
int device_error(DLDevice device, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A new device kind is one file and its row in device_api.c. */
extern const struct device_api cpu_device_api, cuda_device_api, opencl_device_api;
