/* The code of a module, built for one OpenCL device. No Python.h. */
#ifndef DSO_PACKER_DEVICE_OPENCL_PROGRAM_H
#define DSO_PACKER_DEVICE_OPENCL_PROGRAM_H

#include "device/kernel.h"
#include "device/opencl/device.h"

/* Built at the first use, and kept by the module, whose lock is held; NULL with a DeviceError
 * raised, which has the build log. Owned by the module. */
cl_program opencl_program(struct kernel_module *module, const struct opencl_device *device);
void opencl_program_unload(struct kernel_binding *program);

#endif
