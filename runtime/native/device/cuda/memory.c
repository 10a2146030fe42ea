/* CUDA's device table: memory is an address, which any library of the process may have
 * allocated. */
#include <stdio.h>

#include "device/cuda/device.h"
#include "device/device_api.h"

/* The alignment of cuMemAlloc (CUDA C++ Programming Guide, Device Memory Accesses). */
enum { ALIGNMENT = 256 };

static int is_cuda(const struct device_memory *memory) {
  return memory->device.device_type == CUDA_DEVICE_TYPE;
}

static CUdeviceptr address_of(const struct device_memory *memory) {
  return (CUdeviceptr)(uintptr_t)memory->data + memory->offset;
}

static int check(int device_id) { return cuda_device(device_id) ? 0 : -1; }

static int describe(int device_id, char *text, size_t nbytes) {
  const struct cuda_device *device = cuda_device(device_id);
  if (device == NULL) return -1;
  snprintf(text, nbytes, "%s", device->name);
  return 0;
}

static int alloc(int device_id, size_t nbytes, size_t alignment, void **data) {
  const struct cuda_device *device = cuda_device(device_id);
  struct cuda_scope scope;
  CUdeviceptr address = 0;
  if (device == NULL) return -1;
  if (alignment > ALIGNMENT)
    return device_error((DLDevice){CUDA_DEVICE_TYPE, device_id}, 0,
                        "expected an alignment of at most %d bytes, found %zu", ALIGNMENT,
                        alignment);
  CUresult code = cuda_enter(&scope, device);
  if (code == 0) code = device->driver->cuMemAlloc_v2(&address, nbytes ? nbytes : 1);
  cuda_leave(&scope);
  *data = (void *)(uintptr_t)address;
  return code == 0
             ? 0
             : cuda_error(device_id, code, "allocating %zu bytes on '%s'", nbytes, device->name);
}

/* The driver waits for work that uses the memory (cuMemFree). At exit the driver may have ended
 * first, and has then freed all memory. */
static int release(int device_id, void *data) {
  struct cuda_scope scope;
  if (data == NULL || cuda_is_after_fork()) return 0;
  const struct cuda_device *device = cuda_device(device_id);
  if (device == NULL) return -1;
  CUresult code = cuda_enter(&scope, device);
  if (code == 0) code = device->driver->cuMemFree_v2((CUdeviceptr)(uintptr_t)data);
  cuda_leave(&scope);
  if (code == 0 || code == CUDA_ERROR_DEINITIALIZED) return 0;
  return cuda_error(device_id, code, "freeing memory");
}

/* ---- Copies. All run after the earlier work of the default stream. */

/* A copy within a device may still run when the call returns (cuda.h, synchronization). */
static CUresult copy_within(const struct cuda_driver *driver, CUdeviceptr to, CUdeviceptr from,
                            size_t nbytes) {
  CUresult code = driver->cuMemcpyDtoD_v2(to, from, nbytes);
  return code == 0 ? driver->cuCtxSynchronize() : code;
}

static CUresult copy_between(const struct cuda_device *device, const struct device_memory *to,
                             const struct device_memory *from, size_t nbytes) {
  const struct cuda_device *source = cuda_device(from->device.device_id);
  CUresult code = device->driver->cuMemcpyPeer(address_of(to), device->context, address_of(from),
                                               source->context, nbytes);
  return code == 0 ? device->driver->cuCtxSynchronize() : code;
}

static CUresult copy_on(const struct cuda_device *device, const struct device_memory *to,
                        const struct device_memory *from, size_t nbytes) {
  const struct cuda_driver *driver = device->driver;
  if (!is_cuda(to))
    return driver->cuMemcpyDtoH_v2((char *)to->data + to->offset, address_of(from), nbytes);
  if (!is_cuda(from))
    return driver->cuMemcpyHtoD_v2(address_of(to), (const char *)from->data + from->offset, nbytes);
  if (to->device.device_id == from->device.device_id)
    return copy_within(driver, address_of(to), address_of(from), nbytes);
  return copy_between(device, to, from, nbytes);
}

static int copy(const struct device_memory *to, const struct device_memory *from, size_t nbytes) {
  const struct cuda_device *device =
      cuda_device(is_cuda(to) ? to->device.device_id : from->device.device_id);
  struct cuda_scope scope;
  if (nbytes == 0) return 0;
  if (device == NULL || (is_cuda(from) && cuda_device(from->device.device_id) == NULL)) return -1;
  CUresult code = cuda_enter(&scope, device);
  if (code == 0) code = copy_on(device, to, from, nbytes);
  cuda_leave(&scope);
  return code == 0 ? 0 : cuda_error(device->index, code, "copying %zu bytes", nbytes);
}

static int sync(int device_id) {
  const struct cuda_device *device = cuda_device(device_id);
  struct cuda_scope scope;
  if (device == NULL) return -1;
  CUresult code = cuda_enter(&scope, device);
  if (code == 0) code = device->driver->cuCtxSynchronize();
  cuda_leave(&scope);
  return code == 0 ? 0 : cuda_error(device_id, code, "waiting for '%s'", device->name);
}

const struct device_api cuda_device_api = {
    .check = check,
    .describe = describe,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .sync = sync,
};
