/* The current device of each thread, one per device type. */
#include "device/current_device.h"

enum { NUM_TYPES = 32 };

static _Thread_local int32_t current[NUM_TYPES];

static int is_known(int device_type) { return device_type >= 0 && device_type < NUM_TYPES; }

DLDevice current_device(int device_type) {
  return (DLDevice){device_type, is_known(device_type) ? current[device_type] : 0};
}

void set_current_device(DLDevice device) {
  if (is_known(device.device_type)) current[device.device_type] = device.device_id;
}
