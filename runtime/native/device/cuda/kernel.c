/* Binding a kernel to a CUDA device: look-up, signature and limits. */
#include "device/cuda/kernel.h"

#include <stdio.h>
#include <stdlib.h>

#include "device/cuda/program.h"
#include "abi/heap.h"

/* ---- Look-up in the code */

/* The names of all kernels in the module, if the driver can list them (CUDA 12.4). */
static void list_kernels(const struct cuda_driver *driver, CUmodule module, char *text,
                         size_t nbytes) {
  CUfunction functions[16];
  const char *name;
  unsigned count = 0;
  size_t length = 0;
  if (driver->cuModuleEnumerateFunctions == NULL || driver->cuModuleGetFunctionCount == NULL ||
      driver->cuFuncGetName == NULL || driver->cuModuleGetFunctionCount(&count, module) != 0)
    return;
  if (count > 16) count = 16;
  if (driver->cuModuleEnumerateFunctions(functions, count, module) != 0) return;
  for (unsigned i = 0; i < count && length < nbytes; i++)
    if (driver->cuFuncGetName(&name, functions[i]) == 0)
      length += (size_t)snprintf(text + length, nbytes - length, "%s%s", length ? ", " : "", name);
}

static int raise_unknown(const struct kernel *kernel, const struct cuda_device *device,
                         CUmodule module, CUresult code) {
  char names[512] = "";
  list_kernels(device->driver, module, names, sizeof names);
  return cuda_error(device->index, code,
                    "kernel '%.200s': the code does not contain this kernel%s%s",
                    kernel->signature.code_name, *names ? "; it contains: " : "", names);
}

static int find(const struct kernel *kernel, struct cuda_kernel *bound) {
  const struct cuda_device *device = bound->device;
  CUmodule module = cuda_program(kernel->module, device);
  if (module == NULL) return -1;
  CUresult code =
      device->driver->cuModuleGetFunction(&bound->handle, module, kernel->signature.code_name);
  if (code == CUDA_ERROR_NOT_FOUND) return raise_unknown(kernel, device, module, code);
  if (code == 0) return 0;
  return cuda_error(device->index, code, "kernel '%.200s'", kernel->signature.name);
}

/* ---- Comparing the signature with the parameters in the code (CUDA 12.4; older drivers do not
 * report them). In CUDA a vector of three lanes takes the space of three. */

static size_t expected_nbytes(const struct kernel_parameter *parameter) {
  if (is_handle(parameter->type)) return sizeof(CUdeviceptr);
  return (size_t)parameter->type.bits / 8 * parameter->type.lanes;
}

static int check_parameters(const struct kernel *kernel, const struct cuda_kernel *bound) {
  const struct cuda_driver *driver = bound->device->driver;
  int count = 0, expected = kernel->signature.num_parameters;
  size_t offset, nbytes;
  if (driver->cuFuncGetParamInfo == NULL) return 0;
  for (; driver->cuFuncGetParamInfo(bound->handle, (size_t)count, &offset, &nbytes) == 0; count++) {
    if (count >= expected) continue;
    size_t own = expected_nbytes(&kernel->signature.parameters[count]);
    if (own != nbytes)
      return kernel_device_error(kernel, bound->device->index,
                                 "argument %d: %zu bytes in the code, %zu in the signature",
                                 count + 1, nbytes, own);
  }
  if (count == expected) return 0;
  return kernel_device_error(kernel, bound->device->index,
                             "%d arguments in the code, %d in the signature", count, expected);
}

/* ---- Limits */

/* A kernel must opt in to more than 48 KiB of shared memory. This costs nothing until a launch
 * requests as much. */
static CUresult set_limits(const struct kernel *kernel, struct cuda_kernel *bound) {
  const struct cuda_driver *driver = bound->device->driver;
  int fixed = 0;
  CUresult code = driver->cuFuncGetAttribute(
      &bound->max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, bound->handle);
  if (code == 0)
    code = driver->cuFuncGetAttribute(&fixed, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, bound->handle);
  bound->shared_nbytes = bound->device->shared_nbytes - fixed;
  if (code == 0 && kernel->signature.uses_shared && bound->shared_nbytes > 0)
    code = driver->cuFuncSetAttribute(
        bound->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bound->shared_nbytes);
  return code;
}

static int create(const struct kernel *kernel, struct cuda_kernel *bound) {
  if (find(kernel, bound) != 0 || check_parameters(kernel, bound) != 0) return -1;
  CUresult code = set_limits(kernel, bound);
  if (code == 0) return 0;
  return cuda_error(bound->device->index, code, "kernel '%.200s': setting its limits",
                    kernel->signature.name);
}

/* The CUfunction is freed with its module. */
static void unbind(struct kernel_binding *binding) { free(binding); }

static struct kernel_binding *bind(struct kernel *kernel, int device_id) {
  const struct cuda_device *device = cuda_device(device_id);
  struct cuda_kernel *bound = device ? heap_new_zeroed(1, sizeof *bound) : NULL;
  struct cuda_scope scope;
  if (device == NULL) return NULL;
  if (bound == NULL) {
    kernel_device_error(kernel, device->index, "no memory to bind it");
    return NULL;
  }
  bound->device = device;
  CUresult code = cuda_enter(&scope, device);
  int status = code == 0
                   ? create(kernel, bound)
                   : cuda_error(device_id, code, "entering the context of '%s'", device->name);
  cuda_leave(&scope);
  if (status == 0) return &bound->binding;
  free(bound);
  return NULL;
}

static int is_there(void) {
  const char *wrong;
  return cuda_driver(&wrong) != NULL;
}

const struct kernel_driver cuda_kernel_driver = {
    .type_key = "cuda",
    .device_type = CUDA_DEVICE_TYPE,
    .is_there = is_there,
    .bind = bind,
    .launch = cuda_launch,
    .unbind = unbind,
    .unload = cuda_program_unload,
};
