/* The device of a thread, by kind: what `__tvm_set_device` sets. No Python.h. */
#ifndef DSO_PACKER_NATIVE_DEVICE_SET_H
#define DSO_PACKER_NATIVE_DEVICE_SET_H

#include "object.h"

/* Host code that TVM made calls this by name before it launches; 0, or -1 with a DeviceError
 * raised when there is no such device. */
int device_set(DLDevice device);

/* The device of this kind on which this thread's kernels run: the one set last, or 0. */
int device_current(int device_type);

/* The same as a function object, `__tvm_set_device(device_type, device_id)`; it lives for ever. */
extern dso_function_object device_set_function;

#endif
