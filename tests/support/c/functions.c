/* Safe-call functions that take and return functions and tensors. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dso_packer.h"

void (*__TVMFFIErrorSetRaisedFromCStr)(const char *kind, const char *message);

#define FACTS(name, text) \
  DSO_EXPORT const char __packer_fn_##name[] = "packer-function 1\nabi safe_call\n" text
#define FUNCTION(name) \
  DSO_EXPORT int __tvm_ffi_##name(void *handle, const dso_any *args, int32_t num_args, \
                                  dso_any *result)
#define UNUSED (void)handle, (void)args, (void)num_args, (void)result

/* TVMFFIFunctionCell follows the header. */
typedef struct {
  dso_object object;
  dso_safe_call safe_call;
  void *cpp_call;
} function_object;

typedef struct {
  dso_object object;
  DLTensor tensor;
} tensor_object;

static int call(const dso_any *function, const dso_any *args, int32_t num_args, dso_any *result) {
  function_object *object = function->v_ptr;
  return object->safe_call(object, args, num_args, result);
}

static void retain(dso_object *object) { atomic_fetch_add((_Atomic uint64_t *)object, 1); }

static void release(dso_object *object) {
  uint64_t before = atomic_fetch_sub((_Atomic uint64_t *)object, 1);
  if ((uint32_t)before == 1) object->deleter(object, 3);
}

static int give_int(dso_any *result, int64_t value) {
  result->type_index = DSO_INT;
  result->v_int64 = value;
  return 0;
}

/* ---- calling back */

FUNCTION(type_index) { UNUSED; return give_int(result, args[0].type_index); }
FUNCTION(apply) { UNUSED; return call(args, args + 1, num_args - 1, result); }
FACTS(apply_keep, "gil keep\n");
FUNCTION(apply_keep) { UNUSED; return call(args, args + 1, num_args - 1, result); }

/* call_with_count(function, n): of n arguments, which are not there if it is below 0. */
FUNCTION(call_with_count) {
  UNUSED;
  return call(args, args, (int32_t)args[1].v_int64, result);
}

/* The handle that an exported function is called with. */
FUNCTION(handle_is_null) { UNUSED; return give_int(result, handle == NULL); }
FACTS(fails_keep, "gil keep\n");
FUNCTION(fails_keep) { UNUSED; return dso_raise("LookupError", "with the GIL"); }

FUNCTION(result_type) {
  UNUSED;
  dso_any value = {0};
  int status = call(args, args + 1, num_args - 1, &value);
  if (status != 0) return status;
  if (value.type_index >= DSO_OBJECT) release(value.v_ptr);
  return give_int(result, value.type_index);
}

FUNCTION(swallow) {
  UNUSED;
  dso_any ignored = {0};
  return give_int(result, call(args, args + 1, num_args - 1, &ignored));
}
FUNCTION(swallow_then_fail) {
  UNUSED;
  dso_any ignored = {0};
  call(args, args + 1, num_args - 1, &ignored);
  return -1;
}
FUNCTION(translate) {
  UNUSED;
  if (call(args, args + 1, num_args - 1, result) == 0) return 0;
  return dso_raise("KeyError", "translated");
}

/* A value of every borrowed kind. */
FUNCTION(call_with) {
  UNUSED;
  struct { dso_object header; dso_byte_array array; } string = {0};
  dso_any value = {.type_index = (int32_t)args[1].v_int64};
  string.header.combined_ref_count = 1ull << 32 | 1;
  string.header.type_index = value.type_index;
  string.array = (dso_byte_array){"a text of many bytes", 20};
  switch (value.type_index) {
    case DSO_STR:
    case DSO_MODULE:
    case DSO_BYTES: value.v_ptr = &string; break;
    case DSO_SMALL_STR:
    case DSO_SMALL_BYTES: value.small_len = 3; memcpy(value.v_bytes, "abc", 3); break;
    case DSO_INT: value.small_len = DSO_UNSIGNED; value.v_int64 = -1; break;
    case DSO_DATA_TYPE: value.v_dtype = (DLDataType){2, 32, 4}; break;
    case DSO_DEVICE: value.v_device = (DLDevice){2, 1}; break;
  }
  return call(args, &value, 1, result);
}

/* Lend a tensor of the stack: shape (2, 3), the columns of a (2, 6) array, or on a device. */
FUNCTION(lend) {
  UNUSED;
  float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  int64_t shape[] = {2, 3}, strides[] = {6, 2};
  DLTensor tensor = {.data = data, .device = {(int32_t)args[1].v_int64, 0}, .ndim = 2,
                     .dtype = {2, 32, 1}, .shape = shape, .strides = strides, .byte_offset = 4};
  dso_any value = {.type_index = DSO_DLTENSOR_PTR, .v_ptr = &tensor};
  int status = call(args, &value, 1, result);
  return status != 0 || result->type_index != DSO_NONE ? status : give_int(result, (int)data[1]);
}

/* ---- a function that outlives its call */

static dso_any kept;
FUNCTION(keep) { UNUSED; kept = args[0]; retain(kept.v_ptr); return 0; }
FUNCTION(call_kept) { UNUSED; return call(&kept, args, num_args, result); }
FUNCTION(drop_kept) { UNUSED; release(kept.v_ptr); return 0; }

/* ---- another thread: apply_in_thread(function, times) */

struct job {
  const dso_any *function;
  int64_t times, sum;
};

static void *run(void *argument) {
  struct job *job = argument;
  for (int64_t i = 0; i < job->times; i++) {
    dso_any number = {.type_index = DSO_INT, .v_int64 = i}, value = {0};
    if (call(job->function, &number, 1, &value) != 0) return "failed";
    job->sum += value.v_int64;
  }
  return NULL;
}

FUNCTION(apply_in_thread) {
  UNUSED;
  struct job job = {.function = &args[0], .times = args[1].v_int64};
  pthread_t thread;
  void *failed;
  pthread_create(&thread, NULL, run, &job);
  pthread_join(thread, &failed);
  return failed ? dso_raise("RuntimeError", failed) : give_int(result, job.sum);
}

/* ---- results: functions and tensors made here */

static _Atomic int live_objects;
FUNCTION(live_objects) { UNUSED; return give_int(result, live_objects); }

static void delete_object(void *self, int flags) {
  (void)flags;
  live_objects--;
  free(self);
}

static void *new_object(size_t size, int32_t type_index, dso_any *result) {
  dso_object *object = calloc(1, size);
  object->combined_ref_count = 1ull << 32 | 1;
  object->type_index = type_index;
  object->deleter = delete_object;
  live_objects++;
  result->type_index = type_index;
  result->v_ptr = object;
  return object;
}

typedef struct {
  function_object function;
  int64_t number;
} adder;

static int add_number(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  if (num_args != 1) return dso_raise("TypeError", "expected one number");
  return give_int(result, ((adder *)handle)->number + args[0].v_int64);
}

FUNCTION(make_adder) {
  UNUSED;
  adder *object = new_object(sizeof *object, DSO_FUNCTION, result);
  object->function.safe_call = add_number;
  object->number = args[0].v_int64;
  return 0;
}

/* make_tensor(code, bits, device_type, row stride or 0 for NULL strides): shape (2, 3), 1 2 3 ... */
FUNCTION(make_tensor) {
  UNUSED;
  struct { tensor_object head; int64_t shape[2], strides[2]; _Alignas(16) float data[16]; } *made =
      new_object(sizeof *made, DSO_TENSOR, result);
  DLTensor *tensor = &made->head.tensor;
  for (int i = 0; i < 16; i++) made->data[i] = (float)i;
  made->shape[0] = 2, made->shape[1] = 3;
  made->strides[0] = args[3].v_int64, made->strides[1] = 1;
  tensor->dtype = (DLDataType){(uint8_t)args[0].v_int64, (uint8_t)args[1].v_int64, 1};
  tensor->device.device_type = (int32_t)args[2].v_int64;
  tensor->ndim = 2;
  tensor->data = made->data;
  tensor->byte_offset = 4;
  tensor->shape = made->shape;
  tensor->strides = args[3].v_int64 ? made->strides : NULL;
  return 0;
}

/* A tensor object with an inconsistent shape: (ndim, extent, stride). */
FUNCTION(make_inconsistent) {
  UNUSED;
  struct { tensor_object head; int64_t shape[2], strides[2]; } *made =
      new_object(sizeof *made, DSO_TENSOR, result);
  DLTensor *tensor = &made->head.tensor;
  tensor->ndim = (int32_t)args[0].v_int64;
  made->shape[0] = made->shape[1] = args[1].v_int64;
  made->strides[0] = made->strides[1] = args[2].v_int64;
  tensor->dtype = (DLDataType){2, 32, 1};
  tensor->device.device_type = 1;
  tensor->shape = made->shape;
  tensor->strides = made->strides;
  return 0;
}

FUNCTION(of_dtype) {
  UNUSED;
  result->type_index = DSO_DATA_TYPE;
  result->v_dtype = (DLDataType){(uint8_t)args[0].v_int64, (uint8_t)args[1].v_int64,
                                 (uint16_t)args[2].v_int64};
  return 0;
}
FUNCTION(of_device) {
  UNUSED;
  result->type_index = DSO_DEVICE;
  result->v_device = (DLDevice){(int32_t)args[0].v_int64, (int32_t)args[1].v_int64};
  return 0;
}

/* ---- two calls at once: meet(parties, seconds) -> whether all were inside at the same time */

static _Atomic int inside;
FUNCTION(meet) {
  UNUSED;
  inside++;
  for (int64_t i = 0; i < args[1].v_int64 * 1000 && inside < args[0].v_int64; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  result->type_index = DSO_BOOL;
  result->v_int64 = inside >= args[0].v_int64;
  return 0;
}
