/* Host code that launches the kernel `scale` of an imported module, in the ways there are. */
#include <pthread.h>
#include <time.h>

#include "dso_packer.h"

/* TVM's own symbols of dialect tvm, as its code generator leaves them. */
typedef union {
  int64_t v_int64;
  double v_float64;
  void *v_handle;
} TVMValue;
DSO_EXPORT void *__tvm_module_ctx = 0;
DSO_EXPORT int (*__TVMBackendGetFuncFromEnv)(void *context, const char *name, void **function) = 0;
DSO_EXPORT int (*__TVMFuncCall)(void *function, TVMValue *args, int *codes, int num_args,
                                TVMValue *result, int *result_code) = 0;
enum { CODE_INT = 0, CODE_FLOAT = 2, CODE_HANDLE = 3 };

/* A tensor is the DLTensor itself, or an object that has it after its header. */
static DLTensor *tensor_of(const dso_any *value) {
  if (value->type_index == DSO_DLTENSOR_PTR) return value->v_ptr;
  return (DLTensor *)((dso_object *)value->v_ptr + 1);
}

static int launch(DLTensor *x, double by) {
  int64_t n = x->shape[0];
  return dso_call("scale", 0, dso_tensor(x), dso_float(by), dso_int(n), dso_int((n + 63) / 64),
                  dso_int(64));
}

/* By dso_packer.h. */
DSO_EXPORT int __tvm_ffi_host(void *self, const dso_any *args, int32_t count, dso_any *result) {
  (void)self, (void)count, (void)result;
  return launch(tensor_of(&args[0]), args[1].v_float64);
}

/* Launches with the caller's arguments: (function, arguments...). */
DSO_EXPORT int __tvm_ffi_apply(void *self, const dso_any *args, int32_t count, dso_any *result) {
  (void)self;
  return dso_call_function(args[0].v_ptr, result, args + 1, count - 1);
}

/* A view of a tensor `offset` bytes on, of n elements. */
DSO_EXPORT int __tvm_ffi_scale_view(void *self, const dso_any *args, int32_t count,
                                    dso_any *result) {
  (void)self, (void)count, (void)result;
  DLTensor view = *tensor_of(&args[0]);
  int64_t n = args[2].v_int64;
  view.byte_offset += (uint64_t)args[1].v_int64;
  view.shape = &n;
  view.strides = 0;
  return launch(&view, 2);
}

/* The tensor's handle, as TVM's host code passes it; `which` 1 is not a pointer. */
DSO_EXPORT int __tvm_ffi_scale_handle(void *self, const dso_any *args, int32_t count,
                                      dso_any *result) {
  (void)self, (void)count, (void)result;
  const DLTensor *x = tensor_of(&args[0]);
  void *handle = args[1].v_int64 == 1 ? (void *)&handle : x->data;
  return dso_call("scale", 0, dso_pointer(handle), dso_float(2), dso_int(x->shape[0]), dso_int(1),
                  dso_int(64));
}

/* As host code of TVM launches: the device is set, then the kernel called with its handle. */
DSO_EXPORT int packed_host(TVMValue *args, int *codes, int num_args, TVMValue *result,
                           int *result_code, void *handle) {
  DLTensor *x = args[0].v_handle;
  void *set_device, *scale;
  TVMValue device[] = {{.v_int64 = x->device.device_type}, {.v_int64 = x->device.device_id}};
  int device_codes[] = {CODE_INT, CODE_INT};
  TVMValue values[] = {{.v_handle = x->data}, {.v_float64 = 3}, {.v_int64 = x->shape[0]},
                       {.v_int64 = 1}, {.v_int64 = 64}};
  int value_codes[] = {CODE_HANDLE, CODE_FLOAT, CODE_INT, CODE_INT, CODE_INT};
  (void)codes, (void)num_args, (void)handle;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, "__tvm_set_device", &set_device) ||
      __TVMFuncCall(set_device, device, device_codes, 2, result, result_code) ||
      __TVMBackendGetFuncFromEnv(__tvm_module_ctx, "scale", &scale))
    return -1;
  return __TVMFuncCall(scale, values, value_codes, 5, result, result_code);
}

/* From a thread that Python has never seen, while the caller keeps the GIL. */
static void *launch_in_thread(void *x) { return launch(x, 5) ? x : 0; }

DSO_EXPORT int __tvm_ffi_scale_in_thread(void *self, const dso_any *args, int32_t count,
                                         dso_any *result) {
  pthread_t thread;
  void *failed;
  (void)self, (void)count, (void)result;
  if (pthread_create(&thread, 0, launch_in_thread, tensor_of(&args[0])) || pthread_join(thread, &failed))
    return dso_raise("RuntimeError", "no thread");
  return failed ? dso_raise("RuntimeError", "the launch failed in the thread") : 0;
}
DSO_EXPORT const char __packer_fn_scale_in_thread[] =
    "packer-function 1\nabi safe_call\ngil keep\n";
