/* Host code that calls imported functions, with dso_packer.h; for the tests of the context. */
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include <pthread.h>
#include <time.h>

#include "dso_packer.h"

int (*__TVMFFIFunctionCall)(dso_object *function, const dso_any *args, int32_t num_args,
                            dso_any *result);

#define SAFE(name) \
  DSO_EXPORT int __tvm_ffi_##name(void *handle, const dso_any *args, int32_t num_args, dso_any *result)
#define UNUSED (void)handle, (void)args, (void)num_args, (void)result

/* call(name, arguments...) */
SAFE(call) {
  UNUSED;
  return dso_call_by_name(args[0].v_c_str, result, args + 1, num_args - 1);
}

SAFE(call_none) {
  UNUSED;
  return dso_call("none", result);
}

SAFE(call_all) {
  UNUSED;
  char bytes[] = "abc";
  int64_t shape[] = {3}, strides[] = {1};
  DLTensor tensor = {bytes, {1, 0}, 1, {1, 8, 1}, shape, strides, 0};
  return dso_call("all", result, dso_none(), dso_int(-5), dso_bool(7), dso_float(0.5),
                  dso_string("text"), dso_device(1, 2), dso_tensor(&tensor));
}

/* The result is not wanted, and may be an object. */
SAFE(call_and_drop) {
  UNUSED;
  return dso_call("drop", NULL, dso_int(1));
}

SAFE(find) {
  UNUSED;
  dso_object *function;
  if (dso_find(args[0].v_c_str, &function)) return -1;
  dso_object_retain(function);
  *result = dso_object_value(function);
  return 0;
}

/* Remember a function without owning it, as code that TVM makes does. */
static dso_object *remembered;

SAFE(remember) {
  UNUSED;
  return dso_find(args[0].v_c_str, &remembered);
}

SAFE(call_remembered) {
  UNUSED;
  return dso_call_function(remembered, result, args, num_args);
}

/* Look a function up by whatever context. */
SAFE(find_with) {
  UNUSED;
  dso_object *function;
  return __TVMFFIEnvModLookupFromImports((void *)(uintptr_t)args[0].v_int64, args[1].v_c_str,
                                         &function);
}

SAFE(find_null) {
  UNUSED;
  dso_object *function;
  return __TVMFFIEnvModLookupFromImports(__tvm_ffi__library_ctx, NULL, &function);
}

SAFE(call_null) {
  UNUSED;
  return __TVMFFIFunctionCall(NULL, args, num_args, result);
}

/* Call whatever object a function returns. */
SAFE(call_result) {
  UNUSED;
  dso_any object;
  if (dso_call(args[0].v_c_str, &object)) return -1;
  int status = __TVMFFIFunctionCall((dso_object *)object.v_ptr, args, 0, result);
  dso_release(&object);
  return status;
}

SAFE(call_bad_name) {
  UNUSED;
  return dso_call("\xff", result);
}

SAFE(context) {
  UNUSED;
  *result = dso_int((int64_t)(uintptr_t)__tvm_ffi__library_ctx);
  return 0;
}

/* Call a function from a private thread, and wait for it; the caller keeps the GIL. */
struct work {
  const char *name;
  dso_any result;
  int status;
};

static void *work_thread(void *argument) {
  struct work *work = (struct work *)argument;
  work->status = dso_call(work->name, &work->result, dso_int(20), dso_int(22));
  return NULL;
}

SAFE(call_in_thread) {
  UNUSED;
  struct work work = {args[0].v_c_str, dso_none(), -1};
  pthread_t thread;
  struct timespec until;
  if (pthread_create(&thread, NULL, work_thread, &work) != 0)
    return dso_raise("RuntimeError", "no thread");
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 10;
  if (pthread_timedjoin_np(thread, NULL, &until) != 0)
    return dso_raise("TimeoutError", "the thread waits for the GIL");
  *result = work.result;
  return work.status;
}

DSO_EXPORT const char __packer_fn_call_in_thread[] = "packer-function 1\nabi safe_call\ngil keep\n";

/* Call what is remembered in a thread that finish joins; the caller keeps the GIL, which the thread
 * then waits for. */
static pthread_t begun;
static struct work begun_work;

static void *call_remembered_thread(void *argument) {
  struct work *work = (struct work *)argument;
  work->status = dso_call_function(remembered, &work->result, NULL, 0);
  return NULL;
}

SAFE(begin) {
  UNUSED;
  struct timespec moment = {0, 100000000};
  if (pthread_create(&begun, NULL, call_remembered_thread, &begun_work) != 0)
    return dso_raise("RuntimeError", "no thread");
  nanosleep(&moment, NULL);
  return 0;
}

DSO_EXPORT const char __packer_fn_begin[] = "packer-function 1\nabi safe_call\ngil keep\n";

SAFE(finish) {
  UNUSED;
  pthread_join(begun, NULL);
  *result = begun_work.result;
  return begun_work.status ? dso_raise("RuntimeError", "the thread's call") : 0;
}

SAFE(answer) {
  UNUSED;
  *result = dso_int(7);
  return 0;
}

DSO_EXPORT const char __packer_fn_answer[] = "packer-function 1\nabi safe_call\ngil keep\n";

SAFE(add) {
  UNUSED;
  *result = dso_int(args[0].v_int64 + args[1].v_int64);
  return 0;
}

/* ---- __TVMFFIHandleInitOnce */

int (*__TVMFFIHandleInitOnce)(void **handle, int (*init)(void **result));

static int made, num_made;

static int make(void **result) {
  struct timespec moment = {0, 2000000};
  nanosleep(&moment, NULL);
  num_made++;
  *result = &made;
  return 0;
}

static int make_nothing(void **result) {
  *result = NULL;
  return 0;
}

static int fail(void **result) {
  (void)result;
  return dso_raise("KeyError", "init");
}

/* init_once(kind): 0 make, 1 nothing, 2 fail; the result is how often make was called. */
SAFE(init_once) {
  UNUSED;
  static void *handles[3];
  int (*const inits[])(void **) = {make, make_nothing, fail};
  int kind = (int)args[0].v_int64;
  if (__TVMFFIHandleInitOnce(&handles[kind], inits[kind])) return -1;
  *result = dso_int(num_made);
  return 0;
}
