/* Listing and opening OpenCL devices. */
#include "device/opencl/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "device/device_api.h"

enum { MAX_PLATFORMS = 64, MAX_DEVICES = 64 };

/* The first `num_devices` are listed. A device is open when its queue exists. */
static struct opencl_device devices[MAX_DEVICES];
static atomic_int num_devices, is_ready[MAX_DEVICES], is_after_fork;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note_fork(void) { atomic_store(&is_after_fork, atomic_load(&num_devices) > 0); }

int opencl_is_after_fork(void) {
  return atomic_load_explicit(&is_after_fork, memory_order_relaxed);
}

static int fail(int index, const char *text) {
  return device_error((DLDevice){OPENCL_DEVICE_TYPE, index}, 0, "%s", text);
}

/* ---- Listing. Called with the lock held. */

static void describe(struct opencl_device *device) {
  const struct opencl_driver *driver = device->driver;
  cl_uint bits = 0;
  if (driver->clGetDeviceInfo(device->id, CL_DEVICE_NAME, sizeof device->name - 1, device->name,
                              NULL) != 0)
    snprintf(device->name, sizeof device->name, "a device with a long name");
  driver->clGetDeviceInfo(device->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
  device->alignment = bits >= 8 ? bits / 8 : 1;
  driver->clGetDeviceInfo(device->id, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof device->max_block,
                          device->max_block, NULL);
  driver->clGetDeviceInfo(device->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof device->local_nbytes,
                          &device->local_nbytes, NULL);
}

static int list_platform(const struct opencl_driver *driver, cl_platform_id platform, cl_ulong type,
                         int count) {
  cl_device_id found[MAX_DEVICES];
  cl_uint num_found = 0;
  cl_uint room = (cl_uint)(MAX_DEVICES - count);
  if (room == 0 || driver->clGetDeviceIDs(platform, type, room, found, &num_found) != 0)
    return count; /* a platform without devices of this type also reports an error */
  for (cl_uint i = 0; i < num_found && i < room; i++, count++) {
    devices[count] = (struct opencl_device){.driver = driver, .index = count, .id = found[i]};
    describe(&devices[count]);
  }
  return count;
}

static int list_devices(const struct opencl_driver *driver, int index) {
  static const cl_ulong types[] = {CL_DEVICE_TYPE_GPU, CL_DEVICE_TYPE_ACCELERATOR,
                                   CL_DEVICE_TYPE_CPU};
  static int watches_forks;
  cl_platform_id platforms[MAX_PLATFORMS];
  cl_uint num_platforms = 0;
  int count = 0;
  cl_int code = driver->clGetPlatformIDs(MAX_PLATFORMS, platforms, &num_platforms);
  if (code != 0 && code != CL_PLATFORM_NOT_FOUND_KHR)
    return opencl_error(index, code, "listing OpenCL platforms");
  for (size_t type = 0; type < sizeof types / sizeof *types; type++)
    for (cl_uint i = 0; i < num_platforms && i < MAX_PLATFORMS; i++)
      count = list_platform(driver, platforms[i], types[type], count);
  if (count == 0)
    return device_error((DLDevice){OPENCL_DEVICE_TYPE, index}, code,
                        "no OpenCL device found on %u platforms; %s", num_platforms, opencl_remedy);
  if (!watches_forks) watches_forks = pthread_atfork(NULL, NULL, note_fork) == 0;
  atomic_store_explicit(&num_devices, count, memory_order_release);
  return 0;
}

static int ensure_listed(int index) {
  const char *wrong;
  if (atomic_load_explicit(&num_devices, memory_order_acquire) > 0) return 0;
  const struct opencl_driver *driver = opencl_driver(&wrong);
  if (driver == NULL)
    return device_error((DLDevice){OPENCL_DEVICE_TYPE, index}, 0, "%s; %s", wrong, opencl_remedy);
  return list_devices(driver, index);
}

/* ---- Opening. Called with the lock held. */

static int open_device(struct opencl_device *device) {
  const struct opencl_driver *driver = device->driver;
  cl_int code = 0;
  device->context = driver->clCreateContext(NULL, 1, &device->id, NULL, NULL, &code);
  if (device->context == NULL || code != 0)
    return opencl_error(device->index, code, "creating a context on '%s'", device->name);
  device->queue = driver->clCreateCommandQueue(device->context, device->id, 0, &code);
  if (device->queue == NULL || code != 0) {
    driver->clReleaseContext(device->context);
    return opencl_error(device->index, code, "creating a queue on '%s'", device->name);
  }
  atomic_store_explicit(&is_ready[device->index], 1, memory_order_release);
  return 0;
}

static int refuse_index(int index) {
  char text[160 * 4];
  int count = atomic_load(&num_devices), length = 0;
  for (int i = 0; i < count && i < 4; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%sopencl:%d '%s'",
                       i ? ", " : "", i, devices[i].name);
  return device_error((DLDevice){OPENCL_DEVICE_TYPE, index}, 0, "no such device, found %d: %s",
                      count, text);
}

static int ensure_open(int index) {
  if (ensure_listed(index) != 0) return -1;
  if (index < 0 || index >= atomic_load(&num_devices)) return refuse_index(index);
  return atomic_load(&is_ready[index]) ? 0 : open_device(&devices[index]);
}

const struct opencl_device *opencl_device(int index) {
  if (opencl_is_after_fork()) {
    fail(index, "OpenCL does not work after a fork of a process that used it; start workers with "
                "multiprocessing's spawn, or use OpenCL only in the child");
    return NULL;
  }
  if (index >= 0 && index < MAX_DEVICES &&
      atomic_load_explicit(&is_ready[index], memory_order_acquire))
    return &devices[index];
  pthread_mutex_lock(&lock);
  int status = ensure_open(index);
  pthread_mutex_unlock(&lock);
  return status == 0 ? &devices[index] : NULL;
}
