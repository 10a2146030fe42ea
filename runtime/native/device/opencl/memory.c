/* OpenCL's device table: memory is a cl_mem and an offset. */
#include <stdio.h>
#include <stdlib.h>

#include "device/device_api.h"
#include "abi/heap.h"
#include "device/opencl/buffers.h"
#include "device/opencl/device.h"

static int is_opencl(const struct device_memory *memory) {
  return memory->device.device_type == OPENCL_DEVICE_TYPE;
}

static int fail(int device_id, const char *text) {
  return device_error((DLDevice){OPENCL_DEVICE_TYPE, device_id}, 0, "%s", text);
}

static int check(int device_id) { return opencl_device(device_id) ? 0 : -1; }

static int describe(int device_id, char *text, size_t nbytes) {
  const struct opencl_device *device = opencl_device(device_id);
  if (device == NULL) return -1;
  snprintf(text, nbytes, "%s", device->name);
  return 0;
}

static int alloc(int device_id, size_t nbytes, size_t alignment, void **data) {
  const struct opencl_device *device = opencl_device(device_id);
  cl_int code = 0;
  if (device == NULL) return -1;
  if (alignment > device->alignment)
    return device_error((DLDevice){OPENCL_DEVICE_TYPE, device_id}, 0,
                        "expected an alignment of at most %zu bytes, found %zu", device->alignment,
                        alignment);
  struct opencl_buffer buffer = {.device_id = device_id, .nbytes = nbytes ? nbytes : 1};
  buffer.memory = device->driver->clCreateBuffer(device->context, CL_MEM_READ_WRITE, buffer.nbytes,
                                                 NULL, &code);
  if (buffer.memory == NULL || code != 0)
    return opencl_error(device_id, code,
                        "allocating %zu bytes on '%s' (free other memory, or process smaller "
                        "parts)",
                        nbytes, device->name);
  if (opencl_buffers_add(&buffer) != 0) {
    device->driver->clReleaseMemObject(buffer.memory);
    return fail(device_id, "no memory to register a buffer");
  }
  *data = buffer.memory;
  return 0;
}

/* The driver retains the buffer until the enqueued work is done (clReleaseMemObject). */
static int release(int device_id, void *data) {
  if (data == NULL || opencl_is_after_fork()) return 0;
  if (!opencl_buffers_remove(data, device_id))
    return fail(device_id, "expected memory of this device to free, found memory that was freed "
                           "or allocated elsewhere");
  const struct opencl_device *device = opencl_device(device_id);
  if (device == NULL) return -1;
  cl_int code = device->driver->clReleaseMemObject(data);
  return code == 0 ? 0 : opencl_error(device_id, code, "freeing a buffer");
}

/* The device of `nbytes` at an address; NULL with a DeviceError raised if they are not within one
 * buffer. */
static const struct opencl_device *device_of(const struct device_memory *place, size_t nbytes) {
  const struct opencl_device *device = opencl_device(place->device.device_id);
  struct opencl_buffer buffer;
  if (device == NULL) return NULL;
  if (!opencl_find_buffer(place->data, &buffer) || buffer.device_id != device->index)
    fail(device->index, "expected memory of this device to copy, found memory that was freed or "
                        "allocated elsewhere");
  else if (place->offset > buffer.nbytes || nbytes > buffer.nbytes - place->offset)
    device_error(place->device, 0, "%zu bytes at offset 0x%zx extend beyond a buffer of %zu bytes",
                 nbytes, place->offset, buffer.nbytes);
  else return device;
  return NULL;
}

static int read_to(void *to, const struct device_memory *from, size_t nbytes) {
  const struct opencl_device *device = device_of(from, nbytes);
  if (device == NULL) return -1;
  cl_int code = device->driver->clEnqueueReadBuffer(device->queue, from->data, CL_TRUE,
                                                    from->offset, nbytes, to, 0, NULL, NULL);
  return code == 0 ? 0 : opencl_error(device->index, code, "reading %zu bytes", nbytes);
}

static int write_from(const struct device_memory *to, const void *from, size_t nbytes) {
  const struct opencl_device *device = device_of(to, nbytes);
  if (device == NULL) return -1;
  cl_int code = device->driver->clEnqueueWriteBuffer(device->queue, to->data, CL_TRUE, to->offset,
                                                     nbytes, from, 0, NULL, NULL);
  return code == 0 ? 0 : opencl_error(device->index, code, "writing %zu bytes", nbytes);
}

static int finish(const struct opencl_device *device) {
  cl_int code = device->driver->clFinish(device->queue);
  return code == 0 ? 0 : opencl_error(device->index, code, "waiting for '%s'", device->name);
}

static int copy_within(const struct device_memory *to, const struct device_memory *from,
                       size_t nbytes) {
  const struct opencl_device *device = device_of(from, nbytes);
  if (device == NULL || device_of(to, nbytes) == NULL) return -1;
  cl_int code = device->driver->clEnqueueCopyBuffer(
      device->queue, from->data, to->data, from->offset, to->offset, nbytes, 0, NULL, NULL);
  if (code != 0) return opencl_error(device->index, code, "copying %zu bytes", nbytes);
  return finish(device);
}

/* Two devices have two contexts, so the data is copied through the host, in parts to limit the
 * memory. */
static int copy_between(const struct device_memory *to, const struct device_memory *from,
                        size_t nbytes) {
  enum { PART = 4 << 20 };
  struct device_memory source = *from, target = *to;
  int status = 0;
  void *part = heap_new(nbytes < PART ? nbytes : PART);
  if (part == NULL) return fail(from->device.device_id, "no memory for the copy");
  for (size_t done = 0, step; done < nbytes && status == 0; done += step) {
    step = nbytes - done < PART ? nbytes - done : PART;
    source.offset = from->offset + done;
    target.offset = to->offset + done;
    status = read_to(part, &source, step);
    if (status == 0) status = write_from(&target, part, step);
  }
  free(part);
  return status;
}

static int copy(const struct device_memory *to, const struct device_memory *from, size_t nbytes) {
  if (nbytes == 0) return 0;
  if (!is_opencl(to)) return read_to((char *)to->data + to->offset, from, nbytes);
  if (!is_opencl(from)) return write_from(to, (const char *)from->data + from->offset, nbytes);
  if (to->device.device_id == from->device.device_id) return copy_within(to, from, nbytes);
  return copy_between(to, from, nbytes);
}

static int sync(int device_id) {
  const struct opencl_device *device = opencl_device(device_id);
  return device == NULL ? -1 : finish(device);
}

const struct device_api opencl_device_api = {
    .check = check,
    .describe = describe,
    .alloc = alloc,
    .free = release,
    .copy = copy,
    .sync = sync,
};
