/* `__tvm_set_device`: host code that TVM generated calls this function before it launches a
 * kernel. */
#pragma once

#include "abi/object.h"

/* Make it the thread's current device of its kind. Returns 0, or -1 with a DeviceError raised if
 * there is no such device. */
int device_set(DLDevice device);

/* The same as a static Function object, which takes two ints: device_type and device_id. */
extern dso_function_object device_set_function;
