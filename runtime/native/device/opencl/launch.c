/* The launch of an OpenCL kernel. All checks precede the driver's calls. */
#include "device/current_device.h"
#include "device/opencl/buffers.h"
#include "device/opencl/kernel.h"

/* ---- Memory. Each handle is NULL or a buffer that the core allocated, and all are on one
 * device. */

static struct kernel_handle *handle_at(const struct kernel *kernel, char *packed, int index) {
  const struct kernel_parameter *parameter = &kernel->signature.parameters[index];
  if (!is_handle(parameter->type)) return NULL;
  return (struct kernel_handle *)(void *)(packed + parameter->offset);
}

static int check_buffer(const struct kernel *kernel, int index, const struct kernel_handle *handle,
                        struct kernel_launch *launch) {
  const struct kernel_signature *signature = &kernel->signature;
  struct opencl_buffer buffer;
  if (!opencl_find_buffer(handle->data, &buffer))
    return kernel_error(signature, "ValueError",
                        "argument %d: expected memory that this runtime allocated on opencl, found "
                        "%p, which was freed or allocated elsewhere",
                        index + 1, handle->data);
  if (launch->device_id < 0) launch->device_id = buffer.device_id;
  if (buffer.device_id != launch->device_id)
    return kernel_error(signature, "ValueError",
                        "argument %d: expected a tensor on opencl:%d, like the other arguments, "
                        "found one on opencl:%d; copy it there",
                        index + 1, launch->device_id, buffer.device_id);
  if (handle->byte_offset == 0 || handle->byte_offset < buffer.nbytes) return 0;
  return kernel_error(signature, "ValueError",
                      "argument %d: its byte_offset 0x%llx is beyond its buffer of %zu bytes",
                      index + 1, (unsigned long long)handle->byte_offset, buffer.nbytes);
}

static int check_memory(const struct kernel *kernel, char *packed, struct kernel_launch *launch) {
  for (int i = 0; i < kernel->signature.num_parameters; i++) {
    const struct kernel_handle *handle = handle_at(kernel, packed, i);
    if (handle != NULL && handle->data != NULL && check_buffer(kernel, i, handle, launch) != 0)
      return -1;
  }
  return 0;
}

/* ---- Limits of the device. Extents have 31 bits, so the product of two cannot wrap. */

static int check_group(const struct kernel *kernel, const struct opencl_kernel *bound,
                       const struct kernel_launch *launch) {
  const uint64_t *block = launch->extents + BLOCK_X;
  const struct opencl_device *device = bound->device;
  uint64_t count = 1;
  for (int i = 0; i < 3; i++) {
    if (block[i] > device->max_block[i])
      return kernel_device_error(
          kernel, device->index, "expected a threadIdx.%c of at most %zu on '%s', found %llu",
          "xyz"[i], device->max_block[i], device->name, (unsigned long long)block[i]);
    count = count > bound->max_group ? count : count * block[i];
  }
  if (count <= bound->max_group) return 0;
  return kernel_device_error(kernel, device->index,
                             "expected a work-group of at most %zu on '%s', found one of %llu x "
                             "%llu x %llu",
                             bound->max_group, device->name, (unsigned long long)block[0],
                             (unsigned long long)block[1], (unsigned long long)block[2]);
}

static int check_local(const struct kernel *kernel, const struct opencl_kernel *bound,
                       const struct kernel_launch *launch) {
  const struct opencl_device *device = bound->device;
  if (launch->shared_nbytes > device->local_nbytes)
    return kernel_device_error(
        kernel, device->index,
        "expected at most %llu bytes of dynamic shared memory on '%s', found %llu",
        (unsigned long long)device->local_nbytes, device->name,
        (unsigned long long)launch->shared_nbytes);
  if (launch->shared_nbytes == 0 || bound->has_local) return 0;
  return kernel_device_error(kernel, device->index,
                             "launched with dynamic shared memory, expected a __local pointer as "
                             "the last argument in the code");
}

/* ---- Views: an OpenCL argument has no offset, so a view is passed as a sub-buffer */

static int open_view(const struct kernel *kernel, int index, const struct opencl_device *device,
                     struct kernel_handle *handle) {
  struct opencl_buffer buffer;
  cl_int code = 0;
  if (handle->byte_offset % device->alignment != 0)
    return kernel_error(&kernel->signature, "ValueError",
                        "argument %d: expected a byte_offset that is a multiple of %zu on '%s', "
                        "found 0x%llx; copy the view first",
                        index + 1, device->alignment, device->name,
                        (unsigned long long)handle->byte_offset);
  if (!opencl_find_buffer(handle->data, &buffer) || handle->byte_offset >= buffer.nbytes)
    return kernel_error(&kernel->signature, "ValueError", "argument %d: freed during the call",
                        index + 1);
  const cl_buffer_region region = {handle->byte_offset, buffer.nbytes - handle->byte_offset};
  cl_mem view = device->driver->clCreateSubBuffer(buffer.memory, 0, CL_BUFFER_CREATE_TYPE_REGION,
                                                  &region, &code);
  if (view == NULL || code != 0)
    return opencl_error(device->index, code,
                        "kernel '%.200s': creating a sub-buffer for argument %d",
                        kernel->signature.name, index + 1);
  handle->data = view;
  return 0;
}

/* Replace each handle with an offset by a sub-buffer, in the first `*count` parameters. */
static int open_views(const struct kernel *kernel, const struct opencl_device *device, char *packed,
                      int *count) {
  for (*count = 0; *count < kernel->signature.num_parameters; ++*count) {
    struct kernel_handle *handle = handle_at(kernel, packed, *count);
    if (handle == NULL || handle->data == NULL || handle->byte_offset == 0) continue;
    if (open_view(kernel, *count, device, handle) != 0) return -1;
  }
  return 0;
}

/* A running launch retains its buffers (clReleaseMemObject). */
static void close_views(const struct kernel *kernel, const struct opencl_device *device,
                        char *packed, int count) {
  for (int i = 0; i < count; i++) {
    const struct kernel_handle *handle = handle_at(kernel, packed, i);
    if (handle != NULL && handle->data != NULL && handle->byte_offset != 0)
      device->driver->clReleaseMemObject(handle->data);
  }
}

/* ---- Launching. Called with the kernel's lock held. */

static cl_int set_argument(const struct kernel *kernel, const struct opencl_kernel *bound,
                           const char *packed, int index) {
  const struct kernel_parameter *parameter = &kernel->signature.parameters[index];
  size_t nbytes = is_handle(parameter->type) ? sizeof(cl_mem) : parameter->nbytes;
  return bound->device->driver->clSetKernelArg(bound->handle, (cl_uint)index, nbytes,
                                               packed + parameter->offset);
}

static int set_arguments(const struct kernel *kernel, const struct opencl_kernel *bound,
                         const char *packed, const struct kernel_launch *launch) {
  const struct opencl_device *device = bound->device;
  int count = kernel->signature.num_parameters;
  size_t local_nbytes = launch->shared_nbytes ? (size_t)launch->shared_nbytes : 1;
  cl_int code = 0;
  int index = 0;
  while (index < count && (code = set_argument(kernel, bound, packed, index)) == 0) index++;
  if (code == 0 && bound->has_local)
    code = device->driver->clSetKernelArg(bound->handle, (cl_uint)count, local_nbytes, NULL);
  if (code == 0) return 0;
  return opencl_error(device->index, code, "kernel '%.200s': setting argument %d",
                      kernel->signature.name, index + 1);
}

static int enqueue(const struct kernel *kernel, const struct opencl_kernel *bound,
                   const struct kernel_launch *launch) {
  const struct opencl_device *device = bound->device;
  size_t block[3], total[3];
  if (launch_is_empty(launch)) return 0;
  for (int i = 0; i < 3; i++) {
    block[i] = (size_t)launch->extents[BLOCK_X + i];
    total[i] = (size_t)launch->extents[GRID_X + i] * block[i];
  }
  cl_int code = device->driver->clEnqueueNDRangeKernel(device->queue, bound->handle,
                                                       (cl_uint)kernel->signature.num_dims, NULL,
                                                       total, block, 0, NULL, NULL);
  if (code == 0) return 0;
  return opencl_error(
      device->index, code,
      "kernel '%.200s': launching %zu x %zu x %zu work-items in groups of %zu x %zu x %zu",
      kernel->signature.name, total[0], total[1], total[2], block[0], block[1], block[2]);
}

static int launch_locked(const struct kernel *kernel, struct opencl_kernel *bound,
                         const char *packed, const struct kernel_launch *launch) {
  pthread_mutex_lock(&bound->lock);
  int status = set_arguments(kernel, bound, packed, launch);
  if (status == 0) status = enqueue(kernel, bound, launch);
  pthread_mutex_unlock(&bound->lock);
  return status;
}

static int launch_with_views(const struct kernel *kernel, struct opencl_kernel *bound, char *packed,
                             const struct kernel_launch *launch) {
  int num_views;
  int status = open_views(kernel, bound->device, packed, &num_views);
  if (status == 0) status = launch_locked(kernel, bound, packed, launch);
  close_views(kernel, bound->device, packed, num_views);
  return status;
}

int opencl_launch(struct kernel *kernel, char *packed, struct kernel_launch *launch) {
  int current = current_device(OPENCL_DEVICE_TYPE).device_id;
  if (opencl_is_after_fork()) return opencl_device(current) == NULL ? -1 : 0;
  if (check_memory(kernel, packed, launch) != 0) return -1;
  struct kernel_binding *binding =
      kernel_bind(kernel, launch->device_id >= 0 ? launch->device_id : current);
  struct opencl_kernel *bound = (struct opencl_kernel *)binding;
  if (bound == NULL || check_group(kernel, bound, launch) != 0 ||
      check_local(kernel, bound, launch) != 0)
    return -1;
  return launch_with_views(kernel, bound, packed, launch);
}
