/* The signature of a kernel: its parameters and launch tags, checked and laid out. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/dtype.h"
#include "abi/heap.h"
#include "device/kernel.h"
#include "abi/raised.h"

/* FunctionInfo's launch_param_tags. A call passes one integer per tag after the arguments. */
static const char *const slot_tags[NUM_SLOTS] = {
    "blockIdx.x",
    "blockIdx.y",
    "blockIdx.z",
    "threadIdx.x",
    "threadIdx.y",
    "threadIdx.z",
    "tir.use_dyn_shared_memory",
};

int kernel_error(const struct kernel_signature *signature, const char *kind, const char *format,
                 ...) {
  char text[1024];
  int length = snprintf(text, sizeof text, "%.200s: ", signature->name);
  va_list values;
  va_start(values, format);
  vsnprintf(text + length, sizeof text - (size_t)length, format, values);
  va_end(values);
  return raised_format(kind, "%s", text);
}

/* ---- Types */

static int is_one_of(unsigned value, const unsigned *known, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (known[i] == value) return 1;
  return 0;
}

static int is_scalar(DLDataType type) {
  static const unsigned int_bits[] = {8, 16, 32, 64}, float_bits[] = {16, 32, 64};
  switch (type.code) {
    case DTYPE_INT:
    case DTYPE_UINT: return is_one_of(type.bits, int_bits, 4);
    case DTYPE_FLOAT: return is_one_of(type.bits, float_bits, 3);
    case DTYPE_BOOL: return type.bits == 8 && type.lanes == 1;
    default: return 0;
  }
}

/* The size of a parameter; 0 for types that cannot be passed. A vector of three takes the space of
 * four (OpenCL C, 6.1.5). */
static size_t nbytes_of(DLDataType type) {
  static const unsigned lanes[] = {1, 2, 3, 4, 8, 16};
  if (is_handle(type)) return type.bits == 64 && type.lanes == 1 ? sizeof(struct kernel_handle) : 0;
  if (!is_scalar(type) || !is_one_of(type.lanes, lanes, 6)) return 0;
  return (size_t)(type.lanes == 3 ? 4 : type.lanes) * (type.bits / 8u);
}

static int set_parameters(struct kernel_signature *signature, const DLDataType *types, int count) {
  for (int i = 0; i < count; i++) {
    struct kernel_parameter *parameter = &signature->parameters[i];
    parameter->type = types[i];
    parameter->nbytes = nbytes_of(types[i]);
    if (parameter->nbytes == 0)
      return kernel_error(signature, "DeviceError",
                          "argument %d: unsupported type code %d, %d bits, %d lanes; expected a "
                          "handle, or an integer, float or bool, of up to 16 lanes",
                          i + 1, types[i].code, types[i].bits, types[i].lanes);
    parameter->offset = signature->packed_nbytes;
    signature->packed_nbytes += (parameter->nbytes + 7) & ~(size_t)7;
  }
  signature->num_parameters = count;
  return 0;
}

/* ---- Launch tags */

static int slot_of(const char *tag) {
  for (int slot = 0; slot < NUM_SLOTS; slot++)
    if (strcmp(slot_tags[slot], tag) == 0) return slot;
  return -1;
}

/* WebGPU's tag for written parameters has no integer in the call. */
static int is_note(const char *tag) { return strncmp(tag, "paramWriteAccess:", 17) == 0; }

static int has_slot(const struct kernel_signature *signature, int slot) {
  for (int i = 0; i < signature->num_launch; i++)
    if ((int)signature->launch[i] == slot) return 1;
  return 0;
}

static void add_slot(struct kernel_signature *signature, int slot) {
  signature->launch[signature->num_launch++] = (enum launch_slot)slot;
  if (slot == SHARED_NBYTES) signature->uses_shared = 1;
  else if (slot % 3 + 1 > signature->num_dims) signature->num_dims = slot % 3 + 1;
}

static int set_launch(struct kernel_signature *signature, const char *const *tags, int count) {
  signature->num_dims = 1;
  for (int i = 0; i < count; i++) {
    int slot = slot_of(tags[i]);
    if (slot < 0 && is_note(tags[i])) continue;
    if (slot < 0)
      return kernel_error(signature, "DeviceError",
                          "launch tag '%.100s' is unknown, expected blockIdx.x to blockIdx.z, "
                          "threadIdx.x to threadIdx.z or tir.use_dyn_shared_memory",
                          tags[i]);
    if (has_slot(signature, slot))
      return kernel_error(signature, "DeviceError", "launch tag '%s' occurs twice, expected once",
                          tags[i]);
    add_slot(signature, slot);
  }
  return 0;
}

int kernel_signature_set(struct kernel_signature *signature, const DLDataType *types, int num_types,
                         const char *const *tags, int num_tags) {
  signature->parameters = heap_new_zeroed((size_t)num_types + 1, sizeof *signature->parameters);
  signature->launch = heap_new_zeroed((size_t)num_tags + 1, sizeof *signature->launch);
  if (signature->parameters == NULL || signature->launch == NULL)
    return kernel_error(signature, "OutOfMemoryError", "no memory for its signature");
  if (set_parameters(signature, types, num_types) != 0) return -1;
  return set_launch(signature, tags, num_tags);
}

void kernel_signature_clear(struct kernel_signature *signature) {
  free(signature->name);
  free(signature->code_name);
  free(signature->parameters);
  free(signature->launch);
}
