/* Comparing a kernel's signature with the parameters in its code: with a wrong signature a kernel
 * would dereference arbitrary values. Drivers often report no parameters for binaries
 * (CL_KERNEL_ARG_INFO_NOT_AVAILABLE): then their number is compared, and the driver checks the
 * sizes. */
#include <stdio.h>
#include <string.h>

#include "abi/dtype.h"
#include "device/opencl/kernel.h"

/* OpenCL C 6.1: clGetKernelArgInfo's names of scalar types. Other types (size_t, typedefs of the
 * code) are left to the driver. */
static const struct {
  const char *name;
  uint8_t code, bits;
} scalars[] = {
    {"char", DTYPE_INT, 8},     {"uchar", DTYPE_UINT, 8},    {"short", DTYPE_INT, 16},
    {"ushort", DTYPE_UINT, 16}, {"int", DTYPE_INT, 32},      {"uint", DTYPE_UINT, 32},
    {"long", DTYPE_INT, 64},    {"ulong", DTYPE_UINT, 64},   {"half", DTYPE_FLOAT, 16},
    {"float", DTYPE_FLOAT, 32}, {"double", DTYPE_FLOAT, 64},
};

/* Return 1 if a value of this type can be passed to a parameter of that name. Signed and unsigned
 * integers, and bool as one byte, have the same bits. */
static int fits(const char *name, DLDataType type) {
  char lanes[8] = "";
  if (type.lanes > 1) snprintf(lanes, sizeof lanes, "%d", type.lanes);
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
    size_t length = strlen(scalars[i].name);
    if (strncmp(name, scalars[i].name, length) != 0) continue;
    if (name[length] != '\0' && (name[length] < '0' || name[length] > '9')) continue;
    int is_float = scalars[i].code == DTYPE_FLOAT;
    return is_float == (type.code == DTYPE_FLOAT) && scalars[i].bits == type.bits &&
           strcmp(name + length, lanes) == 0;
  }
  return 1;
}

/* Query a parameter. Returns 0 if the driver does not report it. */
static int ask(const struct opencl_kernel *bound, int index, cl_uint what, void *answer,
               size_t nbytes) {
  return bound->device->driver->clGetKernelArgInfo(bound->handle, (cl_uint)index, what, nbytes,
                                                   answer, NULL) == 0;
}

static int check_parameter(const struct kernel *kernel, const struct opencl_kernel *bound,
                           int index) {
  DLDataType type = kernel->signature.parameters[index].type;
  char name[128] = "";
  cl_uint space = 0;
  if (!ask(bound, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER, &space, sizeof space) ||
      !ask(bound, index, CL_KERNEL_ARG_TYPE_NAME, name, sizeof name - 1))
    return 0;
  if (space == CL_KERNEL_ARG_ADDRESS_LOCAL)
    return kernel_device_error(kernel, bound->device->index,
                               "argument %d: __local memory in the code, expected only for the "
                               "last argument (dynamic shared memory)",
                               index + 1);
  int is_value = space == CL_KERNEL_ARG_ADDRESS_PRIVATE && strstr(name, "image") == NULL;
  if (is_value != is_handle(type) && (!is_value || fits(name, type))) return 0;
  return kernel_device_error(kernel, bound->device->index,
                             "argument %d: '%s' in the code, type code %d, %d bits, %d lanes in "
                             "the signature",
                             index + 1, name, type.code, type.bits, type.lanes);
}

int opencl_check_parameters(const struct kernel *kernel, struct opencl_kernel *bound) {
  const struct kernel_signature *signature = &kernel->signature;
  int expected = signature->num_parameters;
  cl_uint count = 0;
  cl_int code = bound->device->driver->clGetKernelInfo(bound->handle, CL_KERNEL_NUM_ARGS,
                                                       sizeof count, &count, NULL);
  if (code != 0)
    return opencl_error(bound->device->index, code,
                        "kernel '%.200s': querying its number of arguments", signature->name);
  bound->has_local = signature->uses_shared && count == (cl_uint)expected + 1;
  if (!bound->has_local && count != (cl_uint)expected)
    return kernel_device_error(kernel, bound->device->index,
                               "%u arguments in the code, %d in the signature", count, expected);
  for (int i = 0; i < expected; i++)
    if (check_parameter(kernel, bound, i) != 0) return -1;
  return 0;
}
