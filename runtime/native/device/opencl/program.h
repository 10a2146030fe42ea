/* The code of a module, built for one OpenCL device. */
#pragma once

#include "device/kernel.h"
#include "device/opencl/device.h"

/* The module's code, built at the first use and owned by the module. Called with the module's lock
 * held. NULL with a DeviceError raised that contains the build log. */
cl_program opencl_program(struct kernel_module *module, const struct opencl_device *device);
void opencl_program_unload(struct kernel_binding *binding);
