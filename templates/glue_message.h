/* glue_message.h: the messages of refused calls. All of it is cold. */
#ifndef DSO_PACKER_GLUE_MESSAGE_H
#define DSO_PACKER_GLUE_MESSAGE_H

#include "glue_examine.h"

#include <stdarg.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Without optimisation this compiles faster; it only runs when a call is refused. Unused functions
 * are compiled nevertheless, unless they are inline, of which GCC warns beside noinline. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O0")
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
#endif

typedef struct {
  size_t length;
  char text[2048]; /* longer texts are truncated */
} dso_message;

DSO_COLD __attribute__((format(printf, 2, 3))) static inline void dso_say(dso_message *message,
                                                                          const char *format, ...) {
  size_t room = sizeof message->text - message->length;
  va_list values;
  va_start(values, format);
  int length = __builtin_vsnprintf(message->text + message->length, room, format, values);
  va_end(values);
  if (length > 0) message->length += (size_t)length < room ? (size_t)length : room - 1;
}

DSO_COLD static inline void dso_say_list(dso_message *message, const int64_t *values,
                                         int32_t count) {
  dso_say(message, "[");
  for (int32_t i = 0; i < count; i++)
    dso_say(message, "%s%lld", i == 0 ? "" : ", ", (long long)values[i]);
  dso_say(message, "]");
}

DSO_COLD static inline void dso_say_dtype(dso_message *message, DLDataType dtype) {
  static const char *const names[] = {"int",    "uint",    "float", "handle",
                                      "bfloat", "complex", "bool"};
  if (dso_is_legacy_bool(dtype) || (dtype.code == DSO_DT_BOOL && dtype.bits == 8))
    dso_say(message, "bool");
  else if (dtype.code <= DSO_DT_BOOL) dso_say(message, "%s%d", names[dtype.code], dtype.bits);
  else dso_say(message, "custom[%d]%d", dtype.code, dtype.bits);
  if (dtype.lanes != 1) dso_say(message, "x%d", dtype.lanes);
}

DSO_COLD static inline void dso_say_device(dso_message *message, DLDevice device) {
  /* DLDeviceType, by number. */
  static const char *const names[] = {NULL, "cpu",          "cuda",   "cuda_host", "opencl", NULL,
                                      NULL, "vulkan",       "metal",  NULL,        "rocm",   NULL,
                                      NULL, "cuda_managed", "oneapi", "webgpu",    "hexagon"};
  int known = device.device_type >= 0 && device.device_type < (int)(sizeof names / sizeof *names) &&
              names[device.device_type];
  if (device.device_type == DSO_CPU) dso_say(message, "cpu");
  else if (known) dso_say(message, "%s:%d", names[device.device_type], device.device_id);
  else dso_say(message, "device[%d]:%d", device.device_type, device.device_id);
}

DSO_COLD static inline void dso_say_tensor(dso_message *message, const DLTensor *tensor) {
  dso_say_dtype(message, tensor->dtype);
  dso_say_list(message, tensor->shape, tensor->ndim);
  dso_say(message, " on ");
  dso_say_device(message, tensor->device);
  if (dso_is_contiguous(tensor)) return;
  dso_say(message, " with strides ");
  dso_say_list(message, tensor->strides, tensor->ndim);
}

DSO_COLD static inline const char *dso_type_name(int32_t type_index) {
  switch (type_index) {
    case DSO_NONE: return "None";
    case DSO_INT: return "int";
    case DSO_BOOL: return "bool";
    case DSO_FLOAT: return "float";
    case DSO_OPAQUE_PTR: return "an opaque pointer";
    case DSO_DLTENSOR_PTR:
    case DSO_TENSOR: return "a tensor that is NULL or has no shape";
    case DSO_DATA_TYPE: return "a dtype";
    case DSO_DEVICE: return "a device";
    case DSO_RAW_STR:
    case DSO_SMALL_STR:
    case DSO_STR: return "str";
    case DSO_BYTE_ARRAY_PTR:
    case DSO_SMALL_BYTES:
    case DSO_BYTES: return "bytes";
    case DSO_ERROR: return "an error";
    case DSO_FUNCTION: return "a function";
    case DSO_SHAPE: return "a shape";
    case DSO_ARRAY: return "an array";
    case DSO_MODULE: return "a module";
    case DSO_BIG_INT: return "an int beyond int64";
    default: return NULL;
  }
}

DSO_COLD static inline void dso_say_value(dso_message *message, const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  const char *name = dso_type_name(value->type_index);
  if (tensor) dso_say_tensor(message, tensor);
  else if (name) dso_say(message, "%s", name);
  else dso_say(message, "a value of type index %d", value->type_index);
}

/* Name a value: "point: argument 1 'p' field 'x'". */
DSO_COLD static inline const dso_parameter *
dso_say_place(dso_message *message, const dso_function *function, int32_t index) {
  const dso_parameter *parameter = &function->parameters[function->place == DSO_ITEM ? 0 : index];
  if (function->outer) dso_say_place(message, function->outer, function->outer_index);
  switch (function->place) {
    case DSO_ARGUMENT:
      dso_say(message, "%s: argument %d '%s'", function->name, index + 1, parameter->name);
      break;
    case DSO_FIELD: dso_say(message, " field '%s'", parameter->name); break;
    case DSO_ITEM: dso_say(message, " item %d", index); break;
    case DSO_CALLBACK_RESULT:
      dso_say(message, "%s: result of callback '%s'", function->name, parameter->name);
      break;
  }
  return parameter;
}

/* Begin a message: "add_one: argument 1 'x' (const float *): expected ". */
DSO_COLD static inline void dso_say_where(dso_message *message, const dso_function *function,
                                          int32_t index) {
  message->length = 0;
  const dso_parameter *parameter = dso_say_place(message, function, index);
  dso_say(message, " (%s): expected ", parameter->type);
}

DSO_COLD static inline int dso_raise_message(dso_message *message, const dso_function *function,
                                             const char *kind) {
  dso_say(message, "; declared as %s", function->declaration);
  return dso_raise(kind, message->text);
}

DSO_COLD static inline int dso_refuse_count(const dso_function *function, int32_t num_args) {
  dso_message message;
  message.length = 0;
  dso_say(&message, "%s: expected ", function->name);
  if (function->num_required < function->num_parameters)
    dso_say(&message, "%d to ", function->num_required);
  dso_say(&message, "%d argument%s, found %d", function->num_parameters,
          function->num_parameters == 1 ? "" : "s", num_args);
  return dso_raise_message(&message, function, "TypeError");
}

/* No const_loader passed its constants: the loader of the library did not read its tree. */
DSO_COLD static inline int dso_refuse_constants(const dso_function *function) {
  dso_message message;
  message.length = 0;
  dso_say(&message,
          "%s: it has no constants yet, which the library's tree contains; look it up in the "
          "module that runtime.load returns, or export with format='tvm-ffi' for TVM",
          function->name);
  return dso_raise_message(&message, function, "RuntimeError");
}

DSO_COLD static inline int dso_refuse_type(const dso_function *function, const dso_any *args,
                                           int32_t index, const char *expected) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "%s, found ", expected);
  dso_say_value(&message, &args[index]);
  return dso_raise_message(&message, function, "TypeError");
}

/* A finite number became infinite in a smaller type. */
DSO_COLD static inline int dso_refuse_float(const dso_function *function, int32_t index,
                                            double value) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "a finite number that the type holds, found %g", value);
  return dso_raise_message(&message, function, "OverflowError");
}

/* `high` is 1 for a bool, which also accepts the ints 0 and 1. */
DSO_COLD static inline int dso_refuse_integer(const dso_function *function, const dso_any *args,
                                              int32_t index, int64_t low, uint64_t high) {
  const char *expected = high == 1 ? "a bool" : "an int";
  const dso_any *value = &args[index];
  dso_message message;
  if (!dso_is_integer(value)) return dso_refuse_type(function, args, index, expected);
  dso_say_where(&message, function, index);
  dso_say(&message, "%s in %lld .. %llu, found ", expected, (long long)low,
          (unsigned long long)high);
  if (dso_is_beyond_int64(value)) dso_say(&message, "%llu", (unsigned long long)value->v_int64);
  else dso_say(&message, "%lld", (long long)value->v_int64);
  return dso_raise_message(&message, function, "OverflowError");
}

DSO_COLD static inline int dso_refuse_string(const dso_function *function, const dso_any *args,
                                             int32_t index) {
  dso_byte_array bytes = dso_bytes_of(&args[index]);
  dso_message message;
  int is_str = bytes.data != NULL;
  if (!is_str) bytes = dso_raw_bytes_of(&args[index]);
  if (!bytes.data) return dso_refuse_type(function, args, index, "a str");
  const char *nul =
      is_str ? (const char *)__builtin_memchr(bytes.data, 0, (size_t)bytes.size) : NULL;
  dso_say_where(&message, function, index);
  if (nul)
    dso_say(&message, "text without NUL, found one at byte %lld", (long long)(nul - bytes.data));
  else
    dso_say(&message, "text that ends in NUL, found byte 0x%x after its end",
            (unsigned char)bytes.data[bytes.size]);
  return dso_raise_message(&message, function, "ValueError");
}

DSO_COLD static inline void dso_say_address(dso_message *message, const DLTensor *tensor,
                                            int itemsize) {
  if (tensor->data == NULL) dso_say(message, "data, found NULL in ");
  else
    dso_say(message, "data aligned to %d bytes, found address 0x%llx of ", itemsize,
            (unsigned long long)dso_address_of(tensor));
  dso_say_tensor(message, tensor);
}

/* Values that a pointer parameter accepts besides a tensor and None. */
enum { DSO_TENSOR_ONLY = 0, DSO_ALSO_BYTES = 1, DSO_ALSO_ADDRESS = 2 };

DSO_COLD static inline void dso_say_pointee(dso_message *message, int code, int bits) {
  DLDataType dtype = {(uint8_t)code, (uint8_t)bits, 1};
  dso_say(message, "a contiguous CPU tensor");
  if (code == DSO_DT_BYTE) dso_say(message, " of int8 or uint8");
  if (code >= 0) {
    dso_say(message, " of ");
    dso_say_dtype(message, dtype);
  }
}

/* Raise a TypeError if the argument is not a tensor of this dtype, or a ValueError if its device,
 * layout or address is wrong. */
DSO_COLD static inline int dso_refuse_pointer(const dso_function *function, const dso_any *args,
                                              int32_t index, int code, int bits, int also) {
  const DLTensor *tensor = dso_tensor_of(&args[index]);
  int typed = tensor && dso_has_dtype(tensor, code, bits);
  dso_message message;
  dso_say_where(&message, function, index);
  if (typed && dso_is_on_cpu(tensor) && dso_is_contiguous(tensor)) {
    dso_say_address(&message, tensor, bits / 8);
    return dso_raise_message(&message, function, "ValueError");
  }
  dso_say_pointee(&message, code, bits);
  if (!tensor && (also & DSO_ALSO_BYTES)) dso_say(&message, ", bytes");
  if (!tensor && (also & DSO_ALSO_ADDRESS)) dso_say(&message, ", an opaque pointer");
  dso_say(&message, "%s, found ", tensor ? "" : " or None");
  dso_say_value(&message, &args[index]);
  return dso_raise_message(&message, function, typed ? "ValueError" : "TypeError");
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#pragma GCC pop_options
#endif

#ifdef __cplusplus
}
#endif

#endif
