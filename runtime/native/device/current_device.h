/* The device that host code chose for its thread with __tvm_set_device. No Python.h. */
#ifndef DSO_PACKER_DEVICE_CURRENT_DEVICE_H
#define DSO_PACKER_DEVICE_CURRENT_DEVICE_H

#include "dso_abi.h"

/* The one of a type, index 0 until another was set. */
DLDevice current_device(int device_type);

/* Types beyond DLPack's are not kept. */
void set_current_device(DLDevice device);

#endif
