/* The code of a module, loaded on one CUDA device. */
#pragma once

#include "device/cuda/device.h"
#include "device/kernel.h"

/* The module's code, loaded at the first use and owned by the module. Called with the module's lock
 * held and the device's context current. NULL with a DeviceError raised that contains the driver's
 * log. */
CUmodule cuda_program(struct kernel_module *module, const struct cuda_device *device);
void cuda_program_unload(struct kernel_binding *binding);
