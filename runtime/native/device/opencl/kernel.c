/* Binding a kernel to an OpenCL device. */
#include "device/opencl/kernel.h"

#include <stdio.h>
#include <stdlib.h>

#include "abi/heap.h"
#include "device/opencl/program.h"

/* The code does not contain the kernel: list the kernels that it contains. */
static int raise_unknown(const struct kernel *kernel, const struct opencl_device *device,
                         cl_program program, cl_int code) {
  char names[512] = "";
  if (device->driver->clGetProgramInfo(program, CL_PROGRAM_KERNEL_NAMES, sizeof names - 1, names,
                                       NULL) != 0)
    snprintf(names, sizeof names, "too many to list");
  return opencl_error(device->index, code,
                      "kernel '%.200s': the code does not contain this kernel; it contains: %s",
                      kernel->signature.code_name, *names ? names : "none");
}

static int create(const struct kernel *kernel, struct opencl_kernel *bound) {
  const struct opencl_device *device = bound->device;
  const struct opencl_driver *driver = device->driver;
  cl_int code = 0;
  cl_program program = opencl_program(kernel->module, device);
  if (program == NULL) return -1;
  bound->handle = driver->clCreateKernel(program, kernel->signature.code_name, &code);
  if (code == CL_INVALID_KERNEL_NAME) return raise_unknown(kernel, device, program, code);
  if (bound->handle == NULL || code != 0)
    return opencl_error(device->index, code, "kernel '%.200s'", kernel->signature.name);
  code = driver->clGetKernelWorkGroupInfo(bound->handle, device->id, CL_KERNEL_WORK_GROUP_SIZE,
                                          sizeof bound->max_group, &bound->max_group, NULL);
  if (code != 0)
    return opencl_error(device->index, code, "kernel '%.200s': querying its largest work-group",
                        kernel->signature.name);
  return opencl_check_parameters(kernel, bound);
}

static void unbind(struct kernel_binding *binding) {
  struct opencl_kernel *bound = (struct opencl_kernel *)binding;
  if (bound->handle != NULL && !opencl_is_after_fork())
    bound->device->driver->clReleaseKernel(bound->handle);
  pthread_mutex_destroy(&bound->lock);
  free(bound);
}

static struct kernel_binding *bind(struct kernel *kernel, int device_id) {
  const struct opencl_device *device = opencl_device(device_id);
  if (device == NULL) return NULL;
  struct opencl_kernel *bound = heap_new_zeroed(1, sizeof *bound);
  if (bound == NULL) {
    kernel_device_error(kernel, device->index, "no memory to bind it");
    return NULL;
  }
  bound->device = device;
  pthread_mutex_init(&bound->lock, NULL);
  if (create(kernel, bound) == 0) return &bound->binding;
  unbind(&bound->binding);
  return NULL;
}

static int is_there(void) {
  const char *wrong;
  return opencl_driver(&wrong) != NULL;
}

const struct kernel_driver opencl_kernel_driver = {
    .type_key = "opencl",
    .device_type = OPENCL_DEVICE_TYPE,
    .is_there = is_there,
    .bind = bind,
    .launch = opencl_launch,
    .unbind = unbind,
    .unload = opencl_program_unload,
};
