/* The code of a module, loaded on one CUDA device. No Python.h. */
#ifndef DSO_PACKER_DEVICE_CUDA_PROGRAM_H
#define DSO_PACKER_DEVICE_CUDA_PROGRAM_H

#include "device/cuda/device.h"
#include "device/kernel.h"

/* Loaded at the first use, and kept by the module, whose lock is held; the device's context is
 * current. NULL with a DeviceError raised, which has the driver's log. Owned by the module. */
CUmodule cuda_program(struct kernel_module *module, const struct cuda_device *device);
void cuda_program_unload(struct kernel_binding *program);

#endif
