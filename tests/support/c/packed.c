/* Packed C functions as TVM made them to 2025, with its pointer variables. */
#include <stdint.h>
#include <string.h>

typedef struct { uint8_t code, bits; uint16_t lanes; } DataType;
typedef struct { int32_t type, id; } Device;
typedef union {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
  const char *v_str;
  DataType v_type;
  Device v_device;
} Value;
typedef struct { const char *data; size_t size; } ByteArray;
typedef struct { float *data; Device device; int32_t ndim; DataType dtype; int64_t *shape; } Tensor;

void *__tvm_module_ctx;
int (*__TVMFuncCall)(void *function, Value *args, int *codes, int count, Value *ret, int *ret_code);
void (*__TVMAPISetLastError)(const char *text);
int (*__TVMBackendGetFuncFromEnv)(void *context, const char *name, void **function);
const char *(*__TVMGetLastError)(void);

#define PACKED(name) \
  int name(Value *args, int *codes, int count, Value *ret, int *ret_code, void *resource)
#define UNUSED (void)args, (void)codes, (void)count, (void)ret, (void)ret_code, (void)resource

static int give_int(Value *ret, int *ret_code, int64_t value) {
  ret->v_int64 = value;
  *ret_code = 0;
  return 0;
}

PACKED(count) { UNUSED; return give_int(ret, ret_code, count); }
PACKED(preset) { UNUSED; return give_int(ret, ret_code, *ret_code + 100 * (resource == NULL)); }
PACKED(nothing) { UNUSED; return 0; }

/* code(value): the type code it came with */
PACKED(code) { UNUSED; return give_int(ret, ret_code, codes[0]); }

/* echo(value) and echo_as(value, code) */
PACKED(echo) { UNUSED; *ret = args[0]; *ret_code = codes[0]; return 0; }
PACKED(echo_as) { UNUSED; *ret = args[0]; *ret_code = (int)args[1].v_int64; return 0; }

PACKED(sum) {
  UNUSED;
  int64_t sum = 0;
  for (int i = 0; i < count; i++) sum += args[i].v_int64;
  return give_int(ret, ret_code, sum);
}

PACKED(scale) {
  UNUSED;
  Tensor *tensor = args[0].v_handle;
  for (int64_t i = 0; i < tensor->shape[0]; i++) tensor->data[i] *= (float)args[1].v_float64;
  return 0;
}

/* The size of a TVMByteArray. */
PACKED(nbytes) { UNUSED; return give_int(ret, ret_code, (int64_t)((ByteArray *)args[0].v_handle)->size); }

PACKED(length) { UNUSED; return give_int(ret, ret_code, (int64_t)strlen(args[0].v_str)); }

/* A private string, which the next call overwrites. */
PACKED(greet) {
  UNUSED;
  static char text[64];
  strcpy(text, "hello ");
  strncat(text, args[0].v_str, 40);
  ret->v_str = text;
  *ret_code = 11;
  return 0;
}

PACKED(fail) { UNUSED; __TVMAPISetLastError(args[0].v_str); return -1; }
PACKED(fail_null) { UNUSED; __TVMAPISetLastError(NULL); return -1; }
PACKED(fail_silently) { UNUSED; return -3; }

/* call(name, arguments...) */
PACKED(call) {
  UNUSED;
  void *function;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, args[0].v_str, &function)) return -1;
  return __TVMFuncCall(function, args + 1, codes + 1, count - 1, ret, ret_code);
}

/* The length of the string that a function returns, twice: it lives until the next call. */
PACKED(call_for_length) {
  UNUSED;
  void *function;
  Value value;
  int code;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, args[0].v_str, &function)) return -1;
  if (__TVMFuncCall(function, args + 1, codes + 1, count - 1, &value, &code)) return -1;
  int64_t length = code == 11 ? (int64_t)strlen(value.v_str)
                   : code == 12 ? (int64_t)((ByteArray *)value.v_handle)->size : -code;
  return give_int(ret, ret_code, length);
}

/* call_as(name, value, code): with a type code of the caller's choice */
PACKED(call_as) {
  UNUSED;
  void *function;
  int code = (int)args[2].v_int64;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, args[0].v_str, &function)) return -1;
  return __TVMFuncCall(function, args + 1, &code, 1, ret, ret_code);
}

PACKED(call_null) { UNUSED; return __TVMFuncCall(NULL, args, codes, count, ret, ret_code); }

/* The error that a call left. */
PACKED(error_of) {
  void *function;
  UNUSED;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, args[0].v_str, &function)) return -1;
  if (!__TVMFuncCall(function, args + 1, codes + 1, count - 1, ret, ret_code)) return 0;
  ret->v_str = __TVMGetLastError();
  *ret_code = 11;
  return 0;
}

/* A function is an argument, and is called. */
PACKED(apply) {
  UNUSED;
  return __TVMFuncCall(args[0].v_handle, args + 1, codes + 1, count - 1, ret, ret_code);
}

int data_symbol = 1;
