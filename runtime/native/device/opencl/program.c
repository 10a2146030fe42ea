/* Building a module's code for an OpenCL device. */
#include "device/opencl/program.h"

#include <stdlib.h>
#include <string.h>

#include "device/device_api.h"
#include "abi/heap.h"

enum { MAX_LOG = 1 << 24, SHOWN_LOG = 1 << 16 };

struct program {
  struct kernel_binding binding;
  const struct opencl_device *device;
  cl_program handle;
};

static void *fail(const struct opencl_device *device, const char *text) {
  device_error((DLDevice){OPENCL_DEVICE_TYPE, device->index}, 0, "'%s': %s", device->name, text);
  return NULL;
}

/* ---- Formats: each has a function that makes a program from the bytes */

static cl_program from_source(const struct kernel_module *module,
                              const struct opencl_device *device, cl_int *code) {
  const char *text = (const char *)module->data;
  return device->driver->clCreateProgramWithSource(device->context, 1, &text, &module->nbytes,
                                                   code);
}

static cl_program from_binary(const struct kernel_module *module,
                              const struct opencl_device *device, cl_int *code) {
  const unsigned char *bytes = module->data;
  cl_int status = 0;
  cl_program program = device->driver->clCreateProgramWithBinary(
      device->context, 1, &device->id, &module->nbytes, &bytes, &status, code);
  if (*code == 0) *code = status;
  return program;
}

/* SPIR-V 2.3: a header of five words, then instructions, whose first word contains their length in
 * words and their opcode. A driver may abort the process on truncated code, so it is checked here:
 * a module with kernels ends with an OpFunctionEnd. */
static int is_spirv(const struct kernel_module *module) {
  enum { MAGIC = 0x07230203, HEADER = 5, OP_FUNCTION_END = 56 };
  size_t count = module->nbytes / sizeof(uint32_t), at = HEADER;
  uint32_t word = 0;
  memcpy(&word, module->data, count > 0 ? sizeof word : 0);
  if (module->nbytes % sizeof word != 0 || count <= HEADER || word != MAGIC) return 0;
  while (at < count) {
    memcpy(&word, module->data + at * sizeof word, sizeof word);
    if (word >> 16 == 0) return 0;
    at += word >> 16;
  }
  return at == count && (word & 0xffff) == OP_FUNCTION_END;
}

static int takes_spirv(const struct opencl_device *device) {
  char version[256] = "";
  cl_int code = device->driver->clGetDeviceInfo(device->id, CL_DEVICE_IL_VERSION,
                                                sizeof version - 1, version, NULL);
  return code == 0 && strstr(version, "SPIR-V") != NULL &&
         device->driver->clCreateProgramWithIL != NULL;
}

static cl_program from_spirv(const struct kernel_module *module, const struct opencl_device *device,
                             cl_int *code) {
  if (!is_spirv(module))
    return fail(device, "invalid or truncated code of format spirv, expected 0x07230203, then "
                        "instructions up to an OpFunctionEnd");
  if (!takes_spirv(device))
    return fail(device, "SPIR-V is unsupported (CL_DEVICE_IL_VERSION does not list it), expected "
                        "OpenCL C source (cl) or a binary for this device (clbin)");
  return device->driver->clCreateProgramWithIL(device->context, module->data, module->nbytes, code);
}

static const struct format {
  const char *name;
  cl_program (*create)(const struct kernel_module *, const struct opencl_device *, cl_int *);
  const char *options; /* required by the check of the arguments (clGetKernelArgInfo) */
} formats[] = {
    {"cl", from_source, "-cl-kernel-arg-info"},
    {"clbin", from_binary, ""},
    {"xclbin", from_binary, ""},
    {"spirv", from_spirv, ""},
    {"spv", from_spirv, ""},
};

static const struct format *find_format(const char *name) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (strcmp(formats[i].name, name) == 0) return &formats[i];
  return NULL;
}

/* ---- Building */

static int raise_log(const struct opencl_device *device, const char *format, cl_program program,
                     cl_int code) {
  const struct opencl_driver *driver = device->driver;
  size_t nbytes = 0;
  driver->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, 0, NULL, &nbytes);
  char *log = nbytes > 0 && nbytes <= MAX_LOG ? heap_new_zeroed(1, nbytes + 1) : NULL;
  if (log != NULL)
    driver->clGetProgramBuildInfo(program, device->id, CL_PROGRAM_BUILD_LOG, nbytes, log, NULL);
  for (size_t end = log ? strlen(log) : 0; end > 0 && log[end - 1] == '\n';) log[--end] = '\0';
  device_error((DLDevice){OPENCL_DEVICE_TYPE, device->index}, code,
               "'%s' cannot build code of format %s: %s; its log:\n%.*s\n", device->name, format,
               opencl_code_name(code), SHOWN_LOG, log && *log ? log : "(none)");
  free(log);
  return -1;
}

static int build(struct program *program, const struct format *format,
                 const struct kernel_module *module) {
  const struct opencl_device *device = program->device;
  cl_int code = 0;
  if (module->nbytes == 0) {
    fail(device, "the code is empty");
    return -1;
  }
  program->handle = format->create(module, device, &code);
  if (program->handle == NULL && code == 0) return -1; /* with the error raised */
  if (program->handle == NULL || code != 0)
    return opencl_error(device->index, code, "'%s' rejected code of format %s", device->name,
                        format->name);
  code =
      device->driver->clBuildProgram(program->handle, 1, &device->id, format->options, NULL, NULL);
  return code == 0 ? 0 : raise_log(device, format->name, program->handle, code);
}

void opencl_program_unload(struct kernel_binding *binding) {
  struct program *program = (struct program *)binding;
  if (program->handle != NULL && !opencl_is_after_fork())
    program->device->driver->clReleaseProgram(program->handle);
  free(program);
}

static struct program *new_program(const struct kernel_module *module,
                                   const struct opencl_device *device) {
  const struct format *format = find_format(module->fmt);
  struct program *program = heap_new_zeroed(1, sizeof *program);
  if (program == NULL) return fail(device, "no memory for a program");
  program->device = device;
  program->binding.device_id = device->index;
  if (format == NULL)
    device_error((DLDevice){OPENCL_DEVICE_TYPE, device->index}, 0,
                 "'%s': unsupported code format '%.40s', expected cl (OpenCL C source), clbin or "
                 "xclbin (a binary for this device), or spirv",
                 device->name, module->fmt);
  else if (build(program, format, module) == 0) return program;
  opencl_program_unload(&program->binding);
  return NULL;
}

cl_program opencl_program(struct kernel_module *module, const struct opencl_device *device) {
  struct kernel_binding *found = kernel_binding_find(module->programs, device->index);
  struct program *program = (struct program *)found;
  if (program != NULL) return program->handle;
  program = new_program(module, device);
  if (program == NULL) return NULL;
  program->binding.next = module->programs;
  module->programs = &program->binding;
  return program->handle;
}
