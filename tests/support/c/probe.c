/* Hand-written safe-call functions: they report what the core passed, return what it must take. */
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

static int give_int(dso_any *result, int64_t value) {
  result->type_index = DSO_INT;
  result->v_int64 = value;
  return 0;
}

/* ---- arguments */

FUNCTION(count) { UNUSED; return give_int(result, num_args); }
FUNCTION(type_index) { UNUSED; return give_int(result, args[0].type_index); }

FACTS(add, "gil release\ntype int64_t(int64_t a, int64_t b)\nparams a:i64 b:i64\nresult i64\n"
           "future key\ndoc Add two numbers.\n\nSecond paragraph.\n");
FUNCTION(add) { UNUSED; return give_int(result, args[0].v_int64 + args[1].v_int64); }

FUNCTION(sum) {
  UNUSED;
  int64_t sum = 0;
  for (int32_t i = 0; i < num_args; i++) sum += args[i].v_int64;
  return give_int(result, sum);
}

/* A plain value is returned unchanged, small_len too; bytes are returned as a heap object. */
static int give_object(dso_any *result, int32_t type_index, const char *data, uint64_t size,
                       uint64_t counts);
FUNCTION(echo) {
  UNUSED;
  const dso_byte_array *bytes = args[0].v_ptr;
  *result = args[0];
  if (args[0].type_index != DSO_BYTE_ARRAY_PTR) return 0;
  return give_object(result, DSO_BYTES, bytes->data, bytes->size, (1ull << 32) | 1);
}

FACTS(echo_u64, "type uint64_t(uint64_t value)\nparams value:u64\nresult u64\n");
FUNCTION(echo_u64) { UNUSED; *result = args[0]; return 0; }

/* ---- tensors */

FUNCTION(ndim) { UNUSED; return give_int(result, ((DLTensor *)args[0].v_ptr)->ndim); }
FUNCTION(extent) {
  UNUSED;
  return give_int(result, ((DLTensor *)args[0].v_ptr)->shape[args[1].v_int64]);
}
FUNCTION(stride) {
  UNUSED;
  return give_int(result, ((DLTensor *)args[0].v_ptr)->strides[args[1].v_int64]);
}
FUNCTION(address) { UNUSED; return give_int(result, (int64_t)((DLTensor *)args[0].v_ptr)->data); }
FUNCTION(device) {
  UNUSED;
  return give_int(result, ((DLTensor *)args[0].v_ptr)->device.device_type);
}
FUNCTION(dtype) {
  UNUSED;
  DLDataType dtype = ((DLTensor *)args[0].v_ptr)->dtype;
  return give_int(result, dtype.code * 1000000 + dtype.bits * 1000 + dtype.lanes);
}

FACTS(scale, "type void(float *y, double factor)\nparams y:*f32 factor:f64\nresult void\n");
FUNCTION(scale) {
  UNUSED;
  DLTensor *y = args[0].v_ptr;
  for (int64_t i = 0; i < y->shape[0]; i++)
    ((float *)y->data)[i * y->strides[0]] *= (float)args[1].v_float64;
  return 0;
}

FACTS(first, "type double(const float *x)\nparams x:&f32\nresult f64\n");
FUNCTION(first) {
  UNUSED;
  result->type_index = DSO_FLOAT;
  result->v_float64 = *(float *)((DLTensor *)args[0].v_ptr)->data;
  return 0;
}

/* ---- errors */

FUNCTION(fail) { UNUSED; return dso_raise(args[0].v_c_str, args[1].v_c_str); }
FUNCTION(fail_null) { UNUSED; return dso_raise(NULL, NULL); }
FUNCTION(fail_silently) { UNUSED; return -1; }
FUNCTION(fail_with_7) { UNUSED; return 7; }
FUNCTION(raise_but_succeed) { UNUSED; dso_raise("ValueError", "not reported"); return 0; }
FUNCTION(fail_twice) {
  UNUSED;
  dso_raise("ValueError", "first");
  return dso_raise("KeyError", "second");
}

/* ---- results */

static _Atomic int live_objects, deleter_flags;

static void delete_object(void *self, int flags) {
  deleter_flags = deleter_flags * 10 + flags;
  if (!(flags & 2)) return;
  live_objects--;
  free(self);
}

static int give_object(dso_any *result, int32_t type_index, const char *data, uint64_t size,
                       uint64_t counts) {
  struct { dso_object header; dso_byte_array array; char text[]; } *object =
      calloc(1, sizeof *object + size + 1);
  object->header.combined_ref_count = counts;
  object->header.type_index = type_index;
  object->header.deleter = delete_object;
  memcpy(object->text, data, size);
  object->array = (dso_byte_array){object->text, size};
  live_objects++;
  deleter_flags = 0;
  result->type_index = type_index;
  result->small_len = 0;
  result->v_ptr = object;
  return 0;
}

FUNCTION(live_objects) { UNUSED; return give_int(result, live_objects); }
FUNCTION(deleter_flags) { UNUSED; return give_int(result, deleter_flags); }

/* object(type_index, text, strong, weak) */
static void *last_object;
FUNCTION(object) {
  UNUSED;
  uint64_t counts = (uint64_t)args[3].v_int64 << 32 | (uint64_t)args[2].v_int64;
  const char *text = args[1].v_c_str;
  give_object(result, (int32_t)args[0].v_int64, text, strlen(text), counts);
  last_object = result->v_ptr;
  return 0;
}
FUNCTION(last_counts) {
  UNUSED;
  return give_int(result, (int64_t)((dso_object *)last_object)->combined_ref_count);
}
FUNCTION(free_last) { UNUSED; free(last_object); live_objects = 0; return 0; }

/* small(type_index, text, length) */
FUNCTION(small) {
  UNUSED;
  result->type_index = (int32_t)args[0].v_int64;
  result->small_len = (uint32_t)args[2].v_int64;
  strncpy(result->v_bytes, args[1].v_c_str, 8);
  return 0;
}

FUNCTION(of_type) { UNUSED; result->type_index = (int32_t)args[0].v_int64; return 0; }
FUNCTION(not_utf8) {
  UNUSED;
  return give_object(result, DSO_STR, "abcdefgh\xff", 9, (1ull << 32) | 1);
}
FUNCTION(small_not_utf8) {
  UNUSED;
  result->type_index = DSO_SMALL_STR;
  result->small_len = 1;
  result->v_bytes[0] = (char)0xff;
  return 0;
}

/* ---- the GIL: wait until another Python thread has called set_flag */

static _Atomic int waiting, flag;

static int wait_for_flag(const dso_any *args, dso_any *result) {
  flag = 0;
  waiting = 1;
  for (int64_t i = 0; i < args[0].v_int64 && !flag; i++)
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  waiting = 0;
  result->type_index = DSO_BOOL;
  result->v_int64 = flag;
  return 0;
}

FUNCTION(wait) { UNUSED; return wait_for_flag(args, result); }
FACTS(wait_keep, "gil keep\n");
FUNCTION(wait_keep) { UNUSED; return wait_for_flag(args, result); }
FUNCTION(is_waiting) { UNUSED; result->type_index = DSO_BOOL; result->v_int64 = waiting; return 0; }
FUNCTION(set_flag) { UNUSED; flag = 1; return 0; }
