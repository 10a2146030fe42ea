/* One table per device kind: where memory is, and how it moves. No Python.h.
 *
 * Every function returns 0, or -1 with a DeviceError raised (raised.h) whose text names device,
 * driver code and remedy. Nothing of a driver is opened before the first call that needs it. */
#ifndef DSO_PACKER_DEVICE_DEVICE_API_H
#define DSO_PACKER_DEVICE_DEVICE_API_H

#include <stddef.h>

#include "dso_abi.h"

/* A place in a device's memory. `data` may be a handle (OpenCL's cl_mem), so the offset is apart. */
struct device_memory {
  DLDevice device;
  void *data;
  size_t offset;
};

struct device_api {
  /* Is this device there? */
  int (*check)(int device_id);
  /* What the driver calls it; NUL-terminated, cut where it is too long. */
  int (*describe)(int device_id, char *text, size_t nbytes);
  /* At least `alignment` bytes aligned, a power of two; the bytes are not set. */
  int (*alloc)(int device_id, size_t nbytes, size_t alignment, void **data);
  int (*free)(int device_id, void *data);
  /* At least one side is this kind's; the other is too, or is the CPU's. Done when it returns. */
  int (*copy)(const struct device_memory *to, const struct device_memory *from, size_t nbytes);
  /* Wait for all that was launched. */
  int (*sync)(int device_id);
};

/* The table of a DLDeviceType, or NULL with a DeviceError raised. */
const struct device_api *device_api(int device_type);

/* "opencl" for a DLDeviceType, or NULL where there is no such number, as beyond DEVICE_LAST_KIND. */
const char *device_kind_name(int device_type);
enum { DEVICE_LAST_KIND = 18 };

/* Raise a DeviceError "<device>: <text>", or "<device>: <text> (code <code>)" unless the driver's
 * code is 0; returns -1. Python finds its attributes in this very form (runtime/error.py). */
int device_error(DLDevice device, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The tables there are; a further kind is a file and its row in device_api.c. */
extern const struct device_api cpu_device_api, cuda_device_api, opencl_device_api;

#endif
