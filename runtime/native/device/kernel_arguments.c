/* Checking the arguments of a kernel call against its signature, and packing them for the
 * driver. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/device_api.h"
#include "abi/dtype.h"
#include "abi/half.h"
#include "device/kernel.h"
#include "abi/strides.h"

enum { MAX_EXTENT = 0x7fffffff };

struct writer {
  const struct kernel_signature *signature;
  struct kernel_launch *launch;
  int index;         /* of the current argument, from 0 */
  int device_source; /* the argument that determined the device */
};

#define REFUSE(writer, kind, format, ...) \
  kernel_error((writer)->signature, kind, "argument %d: " format, (writer)->index + 1, __VA_ARGS__)

/* ---- Names, for messages */

static const char *value_name(const dso_any *value) {
  switch (value->type_index) {
    case DSO_NONE: return "None";
    case DSO_INT: return "an int";
    case DSO_BOOL: return "a bool";
    case DSO_FLOAT: return "a float";
    case DSO_OPAQUE_PTR: return "an opaque pointer";
    case DSO_TENSOR:
    case DSO_DLTENSOR_PTR: return "a tensor";
    case DSO_RAW_STR:
    case DSO_SMALL_STR:
    case DSO_STR: return "a str";
    default: return "a value of another type";
  }
}

struct type_name {
  char text[24];
};

static struct type_name name_of(DLDataType type) {
  static const char *const stems[] = {"int", "uint", "float"};
  struct type_name name;
  char lanes[8] = "";
  if (type.lanes > 1) snprintf(lanes, sizeof lanes, "x%d", type.lanes);
  if (type.code > DTYPE_FLOAT) snprintf(name.text, sizeof name.text, "bool");
  else snprintf(name.text, sizeof name.text, "%s%d%s", stems[type.code], type.bits, lanes);
  return name;
}

/* ---- Tensors */

static const DLTensor *tensor_of(const dso_any *value) {
  if (value->type_index == DSO_DLTENSOR_PTR) return value->v_ptr;
  if (value->type_index == DSO_TENSOR && value->v_ptr != NULL)
    return &((const dso_tensor_object *)value->v_ptr)->tensor;
  return NULL;
}

static int note_device(struct writer *writer, int device_id) {
  struct kernel_launch *launch = writer->launch;
  const char *kind = device_kind_name(writer->signature->device_type);
  if (launch->device_id >= 0 && launch->device_id != device_id)
    return REFUSE(writer, "ValueError",
                  "expected a tensor on %s:%d, like argument %d, found one on %s:%d; copy it there",
                  kind, launch->device_id, writer->device_source + 1, kind, device_id);
  launch->device_id = device_id;
  writer->device_source = writer->index;
  return 0;
}

static int pack_tensor(struct writer *writer, const DLTensor *tensor,
                       struct kernel_handle *handle) {
  int type = writer->signature->device_type;
  const char *kind = device_kind_name(type), *found = device_kind_name(tensor->device.device_type);
  if (tensor->device.device_type != type)
    return REFUSE(writer, "ValueError",
                  "expected a tensor on %s, found one on %s:%d; copy it there with "
                  "runtime.tensor(array, runtime.Device(\"%s\", 0)), in C with dso_tensor_copy",
                  kind, found ? found : "an unknown device", tensor->device.device_id, kind);
  if (!tensor_is_compact(tensor))
    return REFUSE(writer, "ValueError", "expected a contiguous tensor, found strides%s", "");
  handle->data = tensor->data;
  handle->byte_offset = tensor->byte_offset;
  return note_device(writer, tensor->device.device_id);
}

static int pack_handle(struct writer *writer, const dso_any *value, char *place) {
  struct kernel_handle handle = {NULL, 0};
  const DLTensor *tensor = tensor_of(value);
  int status = 0;
  if (tensor != NULL) status = pack_tensor(writer, tensor, &handle);
  else if (value->type_index == DSO_OPAQUE_PTR) handle.data = value->v_ptr;
  else if (value->type_index != DSO_NONE)
    status = REFUSE(writer, "TypeError", "expected a tensor on %s, found %s",
                    device_kind_name(writer->signature->device_type), value_name(value));
  memcpy(place, &handle, sizeof handle);
  return status;
}

/* ---- Scalars */

static int refuse_range(struct writer *writer, DLDataType type, const dso_any *value) {
  if (value->type_index == DSO_FLOAT)
    return REFUSE(writer, "OverflowError", "out of range, expected %s, found %g",
                  name_of(type).text, value->v_float64);
  if (value->small_len == DSO_UNSIGNED)
    return REFUSE(writer, "OverflowError", "out of range, expected %s, found %llu",
                  name_of(type).text, (unsigned long long)value->v_int64);
  return REFUSE(writer, "OverflowError", "out of range, expected %s, found %lld",
                name_of(type).text, (long long)value->v_int64);
}

/* Return 1 if the type can represent the integer. Integers beyond INT64_MAX are marked. */
static int is_in_range(DLDataType type, const dso_any *value) {
  int is_wide = value->type_index == DSO_INT && value->small_len == DSO_UNSIGNED;
  int64_t number = value->v_int64;
  if (type.code == DTYPE_BOOL) return !is_wide && (number == 0 || number == 1);
  if (type.code == DTYPE_UINT && type.bits == 64) return is_wide || number >= 0;
  if (is_wide) return 0;
  if (type.code == DTYPE_UINT) return number >= 0 && number <= ((int64_t)1 << type.bits) - 1;
  if (type.bits == 64) return 1;
  return number >= -((int64_t)1 << (type.bits - 1)) && number < (int64_t)1 << (type.bits - 1);
}

static int pack_integer(struct writer *writer, DLDataType type, const dso_any *value, char *place) {
  if (value->type_index != DSO_INT && value->type_index != DSO_BOOL)
    return REFUSE(writer, "TypeError", "expected %s, found %s", name_of(type).text,
                  value_name(value));
  if (!is_in_range(type, value)) return refuse_range(writer, type, value);
  uint8_t u8 = (uint8_t)value->v_int64;
  uint16_t u16 = (uint16_t)value->v_int64;
  uint32_t u32 = (uint32_t)value->v_int64;
  switch (type.bits) {
    case 8: memcpy(place, &u8, sizeof u8); break;
    case 16: memcpy(place, &u16, sizeof u16); break;
    case 32: memcpy(place, &u32, sizeof u32); break;
    default: memcpy(place, &value->v_int64, sizeof value->v_int64); break;
  }
  return 0;
}

static int pack_float(struct writer *writer, DLDataType type, const dso_any *value, char *place) {
  static const double half_limit = 65520; /* larger values round to infinity */
  int is_int = value->type_index == DSO_INT || value->type_index == DSO_BOOL;
  if (!is_int && value->type_index != DSO_FLOAT)
    return REFUSE(writer, "TypeError", "expected %s, found %s", name_of(type).text,
                  value_name(value));
  double number = value->v_float64;
  if (is_int)
    number = value->type_index == DSO_INT && value->small_len == DSO_UNSIGNED
                 ? (double)(uint64_t)value->v_int64
                 : (double)value->v_int64;
  if (isfinite(number) && ((type.bits == 32 && isinf((float)number)) ||
                           (type.bits == 16 && fabs(number) >= half_limit)))
    return refuse_range(writer, type, value);
  float f32 = (float)number;
  uint16_t f16 = half_of(number);
  if (type.bits == 64) memcpy(place, &number, sizeof number);
  else if (type.bits == 32) memcpy(place, &f32, sizeof f32);
  else memcpy(place, &f16, sizeof f16);
  return 0;
}

/* A vector argument is an array on the CPU: one element per lane, or one element of the vector
 * type. */
static int pack_vector(struct writer *writer, DLDataType type, const dso_any *value, char *place) {
  const DLTensor *tensor = tensor_of(value);
  int64_t count = 1;
  if (tensor == NULL || tensor->device.device_type != 1)
    return REFUSE(writer, "TypeError",
                  "expected %s as an array of %d elements on the CPU, found %s", name_of(type).text,
                  type.lanes, tensor ? "one on another device" : value_name(value));
  for (int i = 0; i < tensor->ndim; i++) count *= tensor->shape[i];
  if (tensor->dtype.code != type.code || tensor->dtype.bits != type.bits ||
      count * tensor->dtype.lanes != type.lanes || !tensor_is_compact(tensor))
    return REFUSE(writer, "ValueError",
                  "expected %s as a contiguous array of %d elements, found %lld of type code %d "
                  "with %d bits",
                  name_of(type).text, type.lanes, (long long)count, tensor->dtype.code,
                  tensor->dtype.bits);
  memcpy(place, (const char *)tensor->data + tensor->byte_offset, dtype_itemsize(type));
  return 0;
}

static int pack_argument(struct writer *writer, const dso_any *value, char *packed) {
  const struct kernel_parameter *parameter = &writer->signature->parameters[writer->index];
  char *place = packed + parameter->offset;
  if (is_handle(parameter->type)) return pack_handle(writer, value, place);
  if (parameter->type.lanes > 1) return pack_vector(writer, parameter->type, value, place);
  if (parameter->type.code == DTYPE_FLOAT) return pack_float(writer, parameter->type, value, place);
  return pack_integer(writer, parameter->type, value, place);
}

/* ---- The launch */

static int read_launch(struct writer *writer, enum launch_slot slot, const dso_any *value) {
  struct kernel_launch *launch = writer->launch;
  if (value->type_index != DSO_INT)
    return REFUSE(writer, "TypeError", "expected an int for the launch, found %s",
                  value_name(value));
  if (value->small_len == DSO_UNSIGNED || value->v_int64 < 0 || value->v_int64 > MAX_EXTENT)
    return REFUSE(writer, "ValueError", "expected 0 to %d for the launch, found %lld", MAX_EXTENT,
                  (long long)value->v_int64);
  if (slot == SHARED_NBYTES) launch->shared_nbytes = (uint64_t)value->v_int64;
  else launch->extents[slot] = (uint64_t)value->v_int64;
  return 0;
}

static int check_count(const struct kernel_signature *signature, int32_t count) {
  int expected = signature->num_parameters + signature->num_launch;
  if (count == expected) return 0;
  return kernel_error(signature, "TypeError",
                      "expected %d arguments (%d of the kernel and %d for the launch), found %d",
                      expected, signature->num_parameters, signature->num_launch, (int)count);
}

int kernel_pack(const struct kernel_signature *signature, const dso_any *args, int32_t num_args,
                char *packed, struct kernel_launch *launch) {
  struct writer writer = {.signature = signature, .launch = launch};
  *launch = (struct kernel_launch){.device_id = -1, .extents = {1, 1, 1, 1, 1, 1}};
  if (check_count(signature, num_args) != 0) return -1;
  for (; writer.index < num_args; writer.index++) {
    const dso_any *value = &args[writer.index];
    int launch_index = writer.index - signature->num_parameters;
    int status = launch_index < 0 ? pack_argument(&writer, value, packed)
                                  : read_launch(&writer, signature->launch[launch_index], value);
    if (status != 0) return -1;
  }
  return 0;
}
