/* The launch of a kernel through plain OpenCL calls: the reference of benchmarks/kernel.py. The
 * device is opencl:0 of the runtime. The declarations follow CL/cl.h of OpenCL 1.2. */
#include <stddef.h>
#include <stdint.h>

typedef struct handle *handle;

int32_t clGetPlatformIDs(uint32_t, handle *, uint32_t *);
int32_t clGetDeviceIDs(handle, uint64_t, uint32_t, handle *, uint32_t *);
handle clCreateContext(const intptr_t *, uint32_t, const handle *, void *, void *, int32_t *);
handle clCreateCommandQueue(handle, handle, uint64_t, int32_t *);
handle clCreateBuffer(handle, uint64_t, size_t, void *, int32_t *);
handle clCreateProgramWithSource(handle, uint32_t, const char **, const size_t *, int32_t *);
int32_t clBuildProgram(handle, uint32_t, const handle *, const char *, void *, void *);
handle clCreateKernel(handle, const char *, int32_t *);
int32_t clSetKernelArg(handle, uint32_t, size_t, const void *);
int32_t clEnqueueNDRangeKernel(handle, handle, uint32_t, const size_t *, const size_t *,
                               const size_t *, uint32_t, const handle *, handle *);
int32_t clFinish(handle);

static handle queue, kernel, buffer;

static int find_device(handle *device) {
  static const uint64_t types[] = {4, 8, 2}; /* GPU, accelerator, CPU */
  handle platforms[16];
  uint32_t count = 0;
  if (clGetPlatformIDs(16, platforms, &count) != 0) return -1;
  for (int type = 0; type < 3; type++)
    for (uint32_t i = 0; i < count && i < 16; i++)
      if (clGetDeviceIDs(platforms[i], types[type], 1, device, NULL) == 0) return 0;
  return -1;
}

/* Build the kernel `name`, and give it `nbytes` of memory; 0, or an error code. */
int open_kernel(const char *source, const char *name, size_t nbytes) {
  handle device;
  int32_t code;
  if (find_device(&device) != 0) return -1;
  handle context = clCreateContext(NULL, 1, &device, NULL, NULL, &code);
  if (code != 0) return code;
  queue = clCreateCommandQueue(context, device, 0, &code);
  if (code != 0) return code;
  buffer = clCreateBuffer(context, 1, nbytes, NULL, &code);
  if (code != 0) return code;
  handle program = clCreateProgramWithSource(context, 1, &source, NULL, &code);
  if (code != 0) return code;
  if ((code = clBuildProgram(program, 1, &device, "", NULL, NULL)) != 0) return code;
  kernel = clCreateKernel(program, name, &code);
  return code;
}

/* Launch kernel(buffer, by, n) several times, one block of 64, and wait for all launches. */
int launch(int count, float by, int32_t n) {
  const size_t block = 64;
  for (int i = 0; i < count; i++) {
    int32_t code = clSetKernelArg(kernel, 0, sizeof buffer, &buffer);
    if (code == 0) code = clSetKernelArg(kernel, 1, sizeof by, &by);
    if (code == 0) code = clSetKernelArg(kernel, 2, sizeof n, &n);
    if (code == 0)
      code = clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &block, &block, 0, NULL, NULL);
    if (code != 0) return code;
  }
  return clFinish(queue);
}
