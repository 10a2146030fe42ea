/* `__tvm_set_device`: host code that TVM made calls it by this name before it launches. No Python.h. */
#ifndef DSO_PACKER_DEVICE_DEVICE_SET_H
#define DSO_PACKER_DEVICE_DEVICE_SET_H

#include "abi/object.h"

/* Make it the thread's current device of its kind; 0, or -1 with a DeviceError raised when there is
 * no such device. */
int device_set(DLDevice device);

/* The same as a function object of two ints, device_type and device_id; it lives for ever. */
extern dso_function_object device_set_function;

#endif
