/* The launch of a CUDA kernel. All checks precede the driver's calls. */
#include <stdlib.h>

#include "device/cuda/kernel.h"
#include "device/current_device.h"
#include "abi/heap.h"

/* ---- Limits of the device and the kernel. Extents have 31 bits, so the product of two cannot
 * wrap. */

static int check_extents(const struct kernel *kernel, const struct cuda_device *device,
                         const struct kernel_launch *launch) {
  for (int i = 0; i < NUM_EXTENTS; i++) {
    int axis = i % 3, is_block = i >= BLOCK_X;
    int limit = is_block ? device->max_block[axis] : device->max_grid[axis];
    if (launch->extents[i] > (uint64_t)limit)
      return kernel_device_error(kernel, device->index,
                                 "expected a %s.%c of at most %d on '%s', found %llu",
                                 is_block ? "threadIdx" : "blockIdx", "xyz"[axis], limit,
                                 device->name, (unsigned long long)launch->extents[i]);
  }
  return 0;
}

static int check_block(const struct kernel *kernel, const struct cuda_kernel *bound,
                       const struct kernel_launch *launch) {
  const uint64_t *block = launch->extents + BLOCK_X;
  uint64_t limit = (uint64_t)bound->max_threads;
  uint64_t count = block[0] * block[1];
  if (count <= limit && count * block[2] <= limit) return 0;
  return kernel_device_error(kernel, bound->device->index,
                             "expected a block of at most %d threads on '%s', found one of %llu x "
                             "%llu x %llu",
                             bound->max_threads, bound->device->name, (unsigned long long)block[0],
                             (unsigned long long)block[1], (unsigned long long)block[2]);
}

static int check_shared(const struct kernel *kernel, const struct cuda_kernel *bound,
                        const struct kernel_launch *launch) {
  if (launch->shared_nbytes == 0 || (int64_t)launch->shared_nbytes <= bound->shared_nbytes)
    return 0;
  return kernel_device_error(kernel, bound->device->index,
                             "expected at most %d bytes of dynamic shared memory on '%s', found "
                             "%llu",
                             bound->shared_nbytes, bound->device->name,
                             (unsigned long long)launch->shared_nbytes);
}

/* ---- Launching */

/* Set the pointer to each argument, and replace each handle by its address. */
static void point_to_arguments(const struct kernel_signature *signature, char *packed,
                               void **pointers) {
  for (int i = 0; i < signature->num_parameters; i++) {
    pointers[i] = packed + signature->parameters[i].offset;
    if (!is_handle(signature->parameters[i].type)) continue;
    struct kernel_handle *handle = pointers[i];
    if (handle->data != NULL) handle->data = (char *)handle->data + handle->byte_offset;
  }
}

static int enqueue(const struct kernel *kernel, const struct cuda_kernel *bound,
                   const struct kernel_launch *launch, void **pointers) {
  const uint64_t *extents = launch->extents;
  struct cuda_scope scope;
  if (launch_is_empty(launch)) return 0;
  CUresult code = cuda_enter(&scope, bound->device);
  if (code == 0)
    code = bound->device->driver->cuLaunchKernel(
        bound->handle, (unsigned)extents[GRID_X], (unsigned)extents[GRID_Y],
        (unsigned)extents[GRID_Z], (unsigned)extents[BLOCK_X], (unsigned)extents[BLOCK_Y],
        (unsigned)extents[BLOCK_Z], (unsigned)launch->shared_nbytes, NULL, pointers, NULL);
  cuda_leave(&scope);
  if (code == 0) return 0;
  return cuda_error(bound->device->index, code,
                    "kernel '%.200s': launching %llu x %llu x %llu blocks of %llu x %llu x %llu "
                    "threads",
                    kernel->signature.name, (unsigned long long)extents[GRID_X],
                    (unsigned long long)extents[GRID_Y], (unsigned long long)extents[GRID_Z],
                    (unsigned long long)extents[BLOCK_X], (unsigned long long)extents[BLOCK_Y],
                    (unsigned long long)extents[BLOCK_Z]);
}

static int launch_on(const struct kernel *kernel, const struct cuda_kernel *bound, char *packed,
                     const struct kernel_launch *launch) {
  enum { FEW = 64 };
  void *few[FEW], **pointers = few;
  size_t count = (size_t)kernel->signature.num_parameters;
  if (count > FEW && (pointers = heap_new(count * sizeof *pointers)) == NULL)
    return kernel_device_error(kernel, bound->device->index, "no memory for its %zu arguments",
                               count);
  point_to_arguments(&kernel->signature, packed, pointers);
  int status = enqueue(kernel, bound, launch, pointers);
  if (pointers != few) free(pointers);
  return status;
}

int cuda_launch(struct kernel *kernel, char *packed, struct kernel_launch *launch) {
  int device_id = launch->device_id;
  if (device_id < 0) device_id = current_device(CUDA_DEVICE_TYPE).device_id;
  if (cuda_is_after_fork() && cuda_device(device_id) == NULL) return -1;
  const struct cuda_kernel *bound = (const struct cuda_kernel *)kernel_bind(kernel, device_id);
  if (bound == NULL || check_extents(kernel, bound->device, launch) != 0 ||
      check_block(kernel, bound, launch) != 0 || check_shared(kernel, bound, launch) != 0)
    return -1;
  return launch_on(kernel, bound, packed, launch);
}
