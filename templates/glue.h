/* glue.h: the checks and conversions of the generated safe-call wrappers.
 *
 * The generated glue.c contains only data (one dso_function per wrapper) and calls of the functions
 * below. The success path is inline. Each refusal is one call of a cold function, which examines
 * the argument again to describe the error. C11 and C++17, GCC and Clang. Layouts: dso_abi.h;
 * rules: docs/functions.md. */
#ifndef DSO_PACKER_GLUE_H
#define DSO_PACKER_GLUE_H

#include "dso_abi.h"
#include "exceptions.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function's facts are one string literal, which a long doc may extend beyond the limit of
 * C11. */
#pragma GCC diagnostic ignored "-Woverlength-strings"

#define DSO_COLD __attribute__((cold, noinline, unused))
#define DSO_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* Give a C name another symbol: user functions may be named index, read or a.b$c. */
#define DSO_QUOTE_(text) #text
#define DSO_QUOTE(text) DSO_QUOTE_(text)
#define DSO_SYMBOL(name) __asm__(DSO_QUOTE(__USER_LABEL_PREFIX__) name)

/* A wrapped function must be defined in the same library: the linker reports an undefined protected
 * symbol by name, and no other definition can replace a defined one at load time. An assembler
 * directive, since GCC drops a visibility attribute beside an assembler name. */
#ifdef __ELF__
#define DSO_OWN(name) __asm__(".protected " DSO_QUOTE(__USER_LABEL_PREFIX__) name)
#else
#define DSO_OWN(name) __asm__("")
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Static linking: registering symbols in the system library ---- */

#define DSO_WEAK __attribute__((weak))
#define DSO_CONSTRUCTOR __attribute__((constructor))

extern int TVMBackendRegisterSystemLibSymbol(const char *name, void *address);

/* An undefined weak symbol has the address NULL. */
static inline void dso_add(const char *name, void *address) {
  if (address) (void)TVMBackendRegisterSystemLibSymbol(name, address);
}

typedef struct {
  const char *name;
  const char *type; /* as declared, without the name */
} dso_parameter;

typedef struct {
  const char *name;
  const char *declaration;
  const dso_parameter *parameters;
  int32_t num_parameters;
} dso_function;

/* DLDataTypeCode (dlpack.h). DSO_DT_ANY accepts every dtype; it is used for void *. */
enum {
  DSO_DT_ANY = -1,
  DSO_DT_INT = 0,
  DSO_DT_UINT = 1,
  DSO_DT_FLOAT = 2,
  DSO_DT_HANDLE = 3,
  DSO_DT_BFLOAT = 4,
  DSO_DT_COMPLEX = 5,
  DSO_DT_BOOL = 6
};

/* DLDeviceType of memory that the CPU can read. */
enum { DSO_CPU = 1, DSO_CUDA_HOST = 3 };

/* ---- Examining an argument ------------------------------------------------------------------- */

static inline int dso_is_integer(const dso_any *value) {
  return value->type_index == DSO_INT || value->type_index == DSO_BOOL;
}

static inline int dso_is_beyond_int64(const dso_any *value) {
  return value->type_index == DSO_INT && value->small_len == DSO_UNSIGNED && value->v_int64 < 0;
}

static inline int dso_is_on_cpu(const DLTensor *tensor) {
  return tensor->device.device_type == DSO_CPU || tensor->device.device_type == DSO_CUDA_HOST;
}

/* Legacy TVM writes bool as (uint, 1, 1). */
static inline int dso_is_legacy_bool(DLDataType dtype) {
  return dtype.code == DSO_DT_UINT && dtype.bits == 1 && dtype.lanes == 1;
}

static inline int dso_has_dtype(const DLTensor *tensor, int code, int bits) {
  DLDataType dtype = tensor->dtype;
  if (code == DSO_DT_ANY) return 1;
  if (dtype.code == code && dtype.bits == bits && dtype.lanes == 1) return 1;
  return code == DSO_DT_BOOL && dso_is_legacy_bool(dtype);
}

static inline int dso_is_empty(const DLTensor *tensor) {
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] == 0) return 1;
  return 0;
}

/* Return 1 if the tensor is row-major without gaps. Strides of dimensions of size 1, and all
 * strides of an empty tensor, are ignored. */
static inline int dso_is_contiguous(const DLTensor *tensor) {
  uint64_t compact = 1; /* unsigned, so that an invalid shape may wrap, but not overflow */
  if (tensor->strides == NULL) return 1;
  for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
    if (tensor->shape[i] == 1) continue;
    if ((uint64_t)tensor->strides[i] != compact) return dso_is_empty(tensor);
    compact *= (uint64_t)tensor->shape[i];
  }
  return 1;
}

/* The address as an integer, since adding to NULL (of an empty tensor) is undefined. */
static inline uintptr_t dso_address_of(const DLTensor *tensor) {
  return (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
}

/* Return 1 if the data can be read through a pointer to elements of `itemsize` bytes. */
static inline int dso_is_addressable(const DLTensor *tensor, int itemsize) {
  if (dso_address_of(tensor) % (uintptr_t)itemsize != 0) return 0;
  return tensor->data != NULL || dso_is_empty(tensor);
}

/* The bytes of a counted string; NULL if the argument is not one. */
static inline dso_byte_array dso_bytes_of(const dso_any *value) {
  dso_byte_array none = {NULL, 0};
  if (value->type_index == DSO_STR)
    return *(const dso_byte_array *)(const void *)((const char *)value->v_ptr + sizeof(dso_object));
  if (value->type_index == DSO_SMALL_STR && value->small_len < sizeof value->v_bytes) {
    none.data = value->v_bytes;
    none.size = value->small_len;
  }
  return none;
}

/* Return 1 if the first NUL is the one that terminates the string. */
static inline int dso_is_c_string(dso_byte_array bytes) {
  return bytes.data && memchr(bytes.data, 0, (size_t)bytes.size + 1) == bytes.data + bytes.size;
}

/* ---- Error messages (cold) ------------------------------------------------------------------- */

/* Without optimisation this compiles faster; it only runs when a call is refused. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O0")
#endif

typedef struct {
  size_t length;
  char text[2048]; /* longer texts are truncated */
} dso_message;

DSO_COLD __attribute__((format(printf, 2, 3))) static void dso_say(dso_message *message,
                                                                   const char *format, ...) {
  size_t room = sizeof message->text - message->length;
  va_list values;
  va_start(values, format);
  int length = vsnprintf(message->text + message->length, room, format, values);
  va_end(values);
  if (length > 0) message->length += (size_t)length < room ? (size_t)length : room - 1;
}

DSO_COLD static void dso_say_list(dso_message *message, const int64_t *values, int32_t count) {
  dso_say(message, "[");
  for (int32_t i = 0; i < count; i++)
    dso_say(message, "%s%lld", i == 0 ? "" : ", ", (long long)values[i]);
  dso_say(message, "]");
}

DSO_COLD static void dso_say_dtype(dso_message *message, DLDataType dtype) {
  static const char *const names[] = {"int",    "uint",    "float", "handle",
                                      "bfloat", "complex", "bool"};
  if (dso_is_legacy_bool(dtype) || (dtype.code == DSO_DT_BOOL && dtype.bits == 8))
    dso_say(message, "bool");
  else if (dtype.code <= DSO_DT_BOOL) dso_say(message, "%s%d", names[dtype.code], dtype.bits);
  else dso_say(message, "custom[%d]%d", dtype.code, dtype.bits);
  if (dtype.lanes != 1) dso_say(message, "x%d", dtype.lanes);
}

DSO_COLD static void dso_say_device(dso_message *message, DLDevice device) {
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

DSO_COLD static void dso_say_tensor(dso_message *message, const DLTensor *tensor) {
  dso_say_dtype(message, tensor->dtype);
  dso_say_list(message, tensor->shape, tensor->ndim);
  dso_say(message, " on ");
  dso_say_device(message, tensor->device);
  if (dso_is_contiguous(tensor)) return;
  dso_say(message, " with strides ");
  dso_say_list(message, tensor->strides, tensor->ndim);
}

DSO_COLD static const char *dso_type_name(int32_t type_index) {
  switch (type_index) {
    case DSO_NONE: return "None";
    case DSO_INT: return "int";
    case DSO_BOOL: return "bool";
    case DSO_FLOAT: return "float";
    case DSO_OPAQUE_PTR: return "an opaque pointer";
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
    case DSO_MODULE: return "a module";
    default: return NULL;
  }
}

DSO_COLD static void dso_say_value(dso_message *message, const dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(value);
  const char *name = dso_type_name(value->type_index);
  if (tensor) dso_say_tensor(message, tensor);
  else if (name) dso_say(message, "%s", name);
  else dso_say(message, "a value of type index %d", value->type_index);
}

/* Begin a message: "add_one: argument 1 'x' (const float *): expected ". */
DSO_COLD static void dso_say_where(dso_message *message, const dso_function *function,
                                   int32_t index) {
  const dso_parameter *parameter = &function->parameters[index];
  message->length = 0;
  dso_say(message, "%s: argument %d '%s' (%s): expected ", function->name, index + 1,
          parameter->name, parameter->type);
}

DSO_COLD static int dso_raise_message(dso_message *message, const dso_function *function,
                                      const char *kind) {
  dso_say(message, "; declared as %s", function->declaration);
  return dso_raise(kind, message->text);
}

DSO_COLD static int dso_refuse_count(const dso_function *function, int32_t num_args) {
  dso_message message;
  message.length = 0;
  dso_say(&message, "%s: expected %d argument%s, found %d", function->name,
          function->num_parameters, function->num_parameters == 1 ? "" : "s", num_args);
  return dso_raise_message(&message, function, "TypeError");
}

DSO_COLD static int dso_refuse_type(const dso_function *function, const dso_any *args,
                                    int32_t index, const char *expected) {
  dso_message message;
  dso_say_where(&message, function, index);
  dso_say(&message, "%s, found ", expected);
  dso_say_value(&message, &args[index]);
  return dso_raise_message(&message, function, "TypeError");
}

/* `high` is 1 for a bool, which also accepts the ints 0 and 1. */
DSO_COLD static int dso_refuse_integer(const dso_function *function, const dso_any *args,
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

DSO_COLD static int dso_refuse_string(const dso_function *function, const dso_any *args,
                                      int32_t index) {
  dso_byte_array bytes = dso_bytes_of(&args[index]);
  dso_message message;
  if (!bytes.data) return dso_refuse_type(function, args, index, "a str");
  const char *nul = (const char *)memchr(bytes.data, 0, (size_t)bytes.size);
  dso_say_where(&message, function, index);
  if (nul)
    dso_say(&message, "text without NUL, found one at byte %lld", (long long)(nul - bytes.data));
  else
    dso_say(&message, "text that ends in NUL, found byte 0x%x behind its end",
            (unsigned char)bytes.data[bytes.size]);
  return dso_raise_message(&message, function, "ValueError");
}

DSO_COLD static void dso_say_address(dso_message *message, const DLTensor *tensor, int itemsize) {
  if (tensor->data == NULL) dso_say(message, "data, found NULL behind ");
  else
    dso_say(message, "data aligned to %d bytes, found address 0x%llx of ", itemsize,
            (unsigned long long)dso_address_of(tensor));
  dso_say_tensor(message, tensor);
}

/* Raise a TypeError if the argument is not a tensor of this dtype, or a ValueError if its device,
 * layout or address is wrong. */
DSO_COLD static int dso_refuse_pointer(const dso_function *function, const dso_any *args,
                                       int32_t index, int code, int bits) {
  const DLTensor *tensor = dso_tensor_of(&args[index]);
  int typed = tensor && dso_has_dtype(tensor, code, bits);
  dso_message message;
  dso_say_where(&message, function, index);
  if (typed && dso_is_on_cpu(tensor) && dso_is_contiguous(tensor)) {
    dso_say_address(&message, tensor, bits / 8);
    return dso_raise_message(&message, function, "ValueError");
  }
  dso_say(&message, "a contiguous CPU tensor");
  if (code != DSO_DT_ANY) {
    DLDataType dtype = {(uint8_t)code, (uint8_t)bits, 1};
    dso_say(&message, " of ");
    dso_say_dtype(&message, dtype);
  }
  dso_say(&message, "%s, found ", tensor ? "" : " or None");
  dso_say_value(&message, &args[index]);
  return dso_raise_message(&message, function, typed ? "ValueError" : "TypeError");
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* ---- Reading arguments: 0 and *out, or -1 with the error raised ------------------------------ */

static inline int dso_take_signed(const dso_function *function, const dso_any *args, int32_t index,
                                  int64_t low, int64_t high, int64_t *out) {
  const dso_any *value = &args[index];
  if (DSO_LIKELY(dso_is_integer(value) && !dso_is_beyond_int64(value) && value->v_int64 >= low &&
                 value->v_int64 <= high)) {
    *out = value->v_int64;
    return 0;
  }
  return dso_refuse_integer(function, args, index, low, (uint64_t)high);
}

static inline int dso_take_unsigned(const dso_function *function, const dso_any *args,
                                    int32_t index, uint64_t high, uint64_t *out) {
  const dso_any *value = &args[index];
  if (DSO_LIKELY(dso_is_integer(value) && (value->v_int64 >= 0 || dso_is_beyond_int64(value)) &&
                 (uint64_t)value->v_int64 <= high)) {
    *out = (uint64_t)value->v_int64;
    return 0;
  }
  return dso_refuse_integer(function, args, index, 0, high);
}

static inline int dso_take_float(const dso_function *function, const dso_any *args, int32_t index,
                                 double *out) {
  const dso_any *value = &args[index];
  if (DSO_LIKELY(value->type_index == DSO_FLOAT)) {
    *out = value->v_float64;
    return 0;
  }
  if (!dso_is_integer(value)) return dso_refuse_type(function, args, index, "a float");
  *out = dso_is_beyond_int64(value) ? (double)(uint64_t)value->v_int64 : (double)value->v_int64;
  return 0;
}

static inline int dso_take_string(const dso_function *function, const dso_any *args, int32_t index,
                                  const char **out) {
  const dso_any *value = &args[index];
  if (value->type_index == DSO_RAW_STR && value->v_c_str) {
    *out = value->v_c_str;
    return 0;
  }
  dso_byte_array bytes = dso_bytes_of(value);
  if (!DSO_LIKELY(dso_is_c_string(bytes))) return dso_refuse_string(function, args, index);
  *out = bytes.data;
  return 0;
}

static inline int dso_take_tensor(const dso_function *function, const dso_any *args, int32_t index,
                                  DLTensor **out) {
  *out = dso_tensor_of(&args[index]);
  return DSO_LIKELY(*out != NULL) ? 0 : dso_refuse_type(function, args, index, "a tensor");
}

static inline int dso_take_pointer(const dso_function *function, const dso_any *args, int32_t index,
                                   int code, int bits, void **out) {
  const dso_any *value = &args[index];
  const DLTensor *tensor = dso_tensor_of(value);
  if (DSO_LIKELY(tensor && dso_is_on_cpu(tensor) && dso_has_dtype(tensor, code, bits) &&
                 dso_is_contiguous(tensor) && dso_is_addressable(tensor, bits / 8))) {
    *out = (void *)dso_address_of(tensor);
    return 0;
  }
  if (value->type_index != DSO_NONE) return dso_refuse_pointer(function, args, index, code, bits);
  *out = NULL;
  return 0;
}

/* An Array object: TVMFFISeqCell follows the header. */
typedef struct {
  dso_object object;
  const dso_any *items;
  int64_t size;
} dso_sequence;

/* TVM's const_loader passes its arrays to an initialiser as one Array: replace it by its items. */
static inline void dso_spread(const dso_any **args, int32_t *num_args) {
  if (*num_args != 1 || (*args)->type_index != DSO_ARRAY) return;
  const dso_sequence *sequence = (const dso_sequence *)(*args)->v_ptr;
  *args = sequence->items;
  *num_args = (int32_t)sequence->size;
}

/* ---- Storing results: always 0, except that a string may fail to allocate -------------------- */

static inline int dso_give_signed(dso_any *result, int64_t value) {
  result->type_index = DSO_INT;
  result->small_len = 0;
  result->v_int64 = value;
  return 0;
}

static inline int dso_give_unsigned(dso_any *result, uint64_t value) {
  result->type_index = DSO_INT;
  result->small_len = value > INT64_MAX ? DSO_UNSIGNED : 0;
  result->v_int64 = (int64_t)value;
  return 0;
}

/* LLVM leaves the bits above an i1 result undefined. */
static inline int dso_give_bool(dso_any *result, uint8_t value) {
  result->type_index = DSO_BOOL;
  result->small_len = 0;
  result->v_int64 = value & 1;
  return 0;
}

static inline int dso_give_float(dso_any *result, double value) {
  result->type_index = DSO_FLOAT;
  result->small_len = 0;
  result->v_float64 = value;
  return 0;
}

/* A Str object, followed by its text. TVM FFI reserves the words before an object
 * (TVMFFIObjectAllocHeader and the Python wrapper before it): NULL means that they are unused. */
typedef struct {
  void *python_wrapper;
  void (*delete_space)(void *object);
  dso_object object;
  dso_byte_array bytes;
} dso_heap_string;

/* flags: 1 for the last strong reference, 2 for the last weak reference. */
static inline void dso_delete_string(void *object, int flags) {
  if (flags & 2) free((char *)object - offsetof(dso_heap_string, object));
}

static inline int dso_give_heap_string(dso_any *result, const char *text, size_t nbytes) {
  dso_heap_string *string = (dso_heap_string *)calloc(1, sizeof *string + nbytes + 1);
  if (!string) return dso_raise("MemoryError", "no memory for a string result");
  memcpy(string + 1, text, nbytes);
  string->object.combined_ref_count = 1 | (uint64_t)1 << 32;
  string->object.type_index = DSO_STR;
  string->object.deleter = dso_delete_string;
  string->bytes.data = (const char *)(string + 1);
  string->bytes.size = nbytes;
  result->type_index = DSO_STR;
  result->small_len = 0;
  result->v_ptr = &string->object;
  return 0;
}

static inline int dso_give_string(dso_any *result, const char *text) {
  size_t nbytes = text ? strlen(text) : 0;
  result->type_index = text ? DSO_SMALL_STR : DSO_NONE;
  result->small_len = (uint32_t)nbytes;
  result->v_int64 = 0;
  if (nbytes >= sizeof result->v_bytes) return dso_give_heap_string(result, text, nbytes);
  if (nbytes) memcpy(result->v_bytes, text, nbytes);
  return 0;
}

#ifdef __cplusplus
}
#endif

#endif
