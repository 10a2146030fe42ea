/* Opening CUDA devices. */
#include "device/cuda/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "device/device_api.h"

enum { MAX_DEVICES = 64 };

/* A device is open when its context exists. */
static struct cuda_device devices[MAX_DEVICES];
static atomic_int is_started, is_ready[MAX_DEVICES], is_after_fork;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void note_fork(void) { atomic_store(&is_after_fork, atomic_load(&is_started)); }

int cuda_is_after_fork(void) { return atomic_load_explicit(&is_after_fork, memory_order_relaxed); }

/* ---- Opening. Called with the lock held. */

static int start(const struct cuda_driver *driver, int index) {
  static int watches_forks;
  CUresult code = driver->cuInit(0);
  if (code != 0 && code != CUDA_ERROR_NO_DEVICE)
    return cuda_error(index, code, "starting the CUDA driver");
  if (!watches_forks) watches_forks = pthread_atfork(NULL, NULL, note_fork) == 0;
  atomic_store(&is_started, code == 0);
  return 0;
}

static int count_devices(const struct cuda_driver *driver, int index, int *count) {
  *count = 0;
  if (!atomic_load(&is_started)) return 0;
  CUresult code = driver->cuDeviceGetCount(count);
  if (*count > MAX_DEVICES) *count = MAX_DEVICES;
  if (code == CUDA_ERROR_NO_DEVICE) *count = 0;
  else if (code != 0) return cuda_error(index, code, "counting CUDA devices");
  return 0;
}

static int refuse_index(const struct cuda_driver *driver, int index, int count) {
  char names[160 * 4] = "", name[128];
  int length = 0;
  CUdevice id;
  if (count == 0)
    return device_error((DLDevice){CUDA_DEVICE_TYPE, index}, 0,
                        "no CUDA device found, but the driver is installed; check "
                        "CUDA_VISIBLE_DEVICES, and compare with nvidia-smi");
  for (int i = 0; i < count && i < 4; i++) {
    if (driver->cuDeviceGet(&id, i) != 0 || driver->cuDeviceGetName(name, sizeof name, id) != 0)
      continue;
    length += snprintf(names + length, sizeof names - (size_t)length, "%scuda:%d '%s'",
                       length ? ", " : "", i, name);
  }
  return device_error((DLDevice){CUDA_DEVICE_TYPE, index}, 0, "no such device, found %d: %s", count,
                      names);
}

static CUresult read_attributes(struct cuda_device *device) {
  int major = 0, minor = 0;
  const struct {
    int attribute, *value;
  } wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, &device->shared_nbytes},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &device->shared_nbytes},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &device->max_block[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 1, &device->max_block[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 2, &device->max_block[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 3, &device->max_grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 4, &device->max_grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + 5, &device->max_grid[2]},
  };
  CUresult code = 0;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted && code == 0; i++) {
    int value = 0;
    code = device->driver->cuDeviceGetAttribute(&value, wanted[i].attribute, device->id);
    if (value > 0) *wanted[i].value = value; /* devices before Volta report 0: no opt-in */
  }
  device->capability = 10 * major + minor;
  return code;
}

static int open_device(struct cuda_device *device, const struct cuda_driver *driver, int index) {
  *device = (struct cuda_device){.driver = driver, .index = index};
  CUresult code = driver->cuDeviceGet(&device->id, index);
  if (code == 0)
    code = driver->cuDeviceGetName(device->name, (int)sizeof device->name - 1, device->id);
  if (code == 0) code = driver->cuDriverGetVersion(&device->driver_version);
  if (code == 0) code = read_attributes(device);
  if (code != 0) return cuda_error(index, code, "querying the device");
  code = driver->cuDevicePrimaryCtxRetain(&device->context, device->id);
  if (code != 0)
    return cuda_error(index, code, "retaining the primary context of '%s'", device->name);
  atomic_store_explicit(&is_ready[index], 1, memory_order_release);
  return 0;
}

static int ensure_open(int index) {
  const char *wrong;
  int count;
  const struct cuda_driver *driver = cuda_driver(&wrong);
  if (driver == NULL)
    return device_error((DLDevice){CUDA_DEVICE_TYPE, index}, 0, "%s; %s", wrong, cuda_remedy);
  if (!atomic_load(&is_started) && start(driver, index) != 0) return -1;
  if (count_devices(driver, index, &count) != 0) return -1;
  if (index < 0 || index >= count) return refuse_index(driver, index, count);
  return atomic_load(&is_ready[index]) ? 0 : open_device(&devices[index], driver, index);
}

const struct cuda_device *cuda_device(int index) {
  if (cuda_is_after_fork()) {
    device_error((DLDevice){CUDA_DEVICE_TYPE, index}, 0,
                 "CUDA does not work after a fork of a process that used it; start workers with "
                 "multiprocessing's spawn, or use CUDA only in the child");
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

/* ---- Contexts */

CUresult cuda_enter(struct cuda_scope *scope, const struct cuda_device *device) {
  CUcontext current = NULL;
  *scope = (struct cuda_scope){.device = device};
  CUresult code = device->driver->cuCtxGetCurrent(&current);
  if (code != 0 || current == device->context) return code;
  code = device->driver->cuCtxPushCurrent_v2(device->context);
  scope->is_pushed = code == 0;
  return code;
}

void cuda_leave(const struct cuda_scope *scope) {
  CUcontext ours;
  if (scope->is_pushed) scope->device->driver->cuCtxPopCurrent_v2(&ours);
}
