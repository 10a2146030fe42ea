/* The table of device kinds, and DeviceError. */
#include "device/device_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"

/* DLDeviceType (dlpack.h), by number: the name of each kind, and its functions if the core has a
 * driver for it. */
static const struct {
  const char *name;
  const struct device_api *api;
} kinds[] = {
    [1] = {"cpu", &cpu_device_api},
    [2] = {"cuda", &cuda_device_api},
    [3] = {"cuda_host", NULL},
    [4] = {"opencl", &opencl_device_api},
    [7] = {"vulkan", NULL},
    [8] = {"metal", NULL},
    [9] = {"vpi", NULL},
    [10] = {"rocm", NULL},
    [11] = {"rocm_host", NULL},
    [12] = {"ext_dev", NULL},
    [13] = {"cuda_managed", NULL},
    [14] = {"oneapi", NULL},
    [15] = {"webgpu", NULL},
    [16] = {"hexagon", NULL},
    [17] = {"maia", NULL},
    [18] = {"trn", NULL},
};

enum { NUM_KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(NUM_KINDS == DEVICE_LAST_KIND + 1, "DEVICE_LAST_KIND is the last row");

const char *device_kind_name(int device_type) {
  return device_type > 0 && device_type < NUM_KINDS ? kinds[device_type].name : NULL;
}

/* "cpu, opencl", for messages. */
static void list_driven(char *text, size_t nbytes) {
  size_t length = 0;
  for (int i = 0; i < NUM_KINDS && length < nbytes; i++)
    if (kinds[i].api != NULL)
      length += (size_t)snprintf(text + length, nbytes - length, "%s%s", length ? ", " : "",
                                 kinds[i].name);
}

const struct device_api *device_api(int device_type) {
  char known[256], message[512];
  const char *name = device_kind_name(device_type);
  if (name != NULL && kinds[device_type].api != NULL) return kinds[device_type].api;
  list_driven(known, sizeof known);
  if (name != NULL)
    snprintf(message, sizeof message,
             "%s: unsupported kind of device, expected one of %s; keep the data on one of these",
             name, known);
  else
    snprintf(message, sizeof message,
             "device type %d: unknown kind of device (DLDeviceType), expected one of %s",
             device_type, known);
  return raised_null("DeviceError", "%s", message);
}

int device_error(DLDevice device, int code, const char *format, ...) {
  char name[32];
  const char *kind = device_kind_name(device.device_type);
  va_list values;
  va_start(values, format);
  char *text = heap_format_list(format, values);
  va_end(values);
  if (kind != NULL) snprintf(name, sizeof name, "%s", kind);
  else snprintf(name, sizeof name, "device[%d]", device.device_type);
  char *message = NULL;
  if (text != NULL && code != 0)
    message = heap_format("%s:%d: %s (code %d)", name, device.device_id, text, code);
  else if (text != NULL) message = heap_format("%s:%d: %s", name, device.device_id, text);
  raised_set("DeviceError", message != NULL ? message : "no memory for the error message");
  free(message);
  free(text);
  return -1;
}
