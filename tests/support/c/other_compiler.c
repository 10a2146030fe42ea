/* Functions as other compilers write them for TVM FFI: safe calls that launch on the current stream.
 *
 * -DCUTE leaves what CuTe DSL's objects leave undefined, -DCUDA what nvcc's and Triton's do. */
#include <tvm/ffi/extra/c_env_api.h>

#define SAFE_CALL(name) \
  int __tvm_ffi_##name(void *self, const TVMFFIAny *args, int32_t num_args, TVMFFIAny *result)

static int give(TVMFFIAny *result, const void *stream) {
  result->type_index = kTVMFFIInt;
  result->v_int64 = (intptr_t)stream;
  return 0;
}

/* Device type and id, and the new stream. */
SAFE_CALL(set) {
  void *before = (void *)-1, *stream = (void *)(intptr_t)args[2].v_int64;
  (void)self, (void)num_args;
  if (TVMFFIEnvSetStream((int)args[0].v_int64, (int)args[1].v_int64, stream, &before)) return -1;
  return give(result, before);
}

SAFE_CALL(get) {
  (void)self;
  if (num_args == 2)
    return give(result, TVMFFIEnvGetStream((int)args[0].v_int64, (int)args[1].v_int64));
  TVMFFIErrorSetRaisedFromCStr("TypeError", "Mismatched number of arguments");
  return -1;
}

#ifdef CUTE
int cuda_dialect_init_library_once(void *state, void *init, void *load, void *fail);
void cuda_dialect_unload_library_once(void *state);
int _cudaLaunchKernelEx(void *stream);
static void *state;
__attribute__((destructor)) static void unload(void) { cuda_dialect_unload_library_once(&state); }
static int load(void *library) { return library == 0; }
SAFE_CALL(launch) {
  (void)self, (void)args, (void)num_args;
  void *fail = (void *)TVMFFIErrorSetRaisedFromCStr;
  if (cuda_dialect_init_library_once(&state, (void *)load, (void *)load, fail)) return -1;
  return give(result, (void *)(intptr_t)_cudaLaunchKernelEx(TVMFFIEnvGetStream(2, 0)));
}
#endif

#ifdef CUDA
int cudaLaunchKernel(void *stream), cuLaunchKernel(void *stream);
SAFE_CALL(launch) {
  (void)self, (void)args, (void)num_args;
  int launched = cudaLaunchKernel(TVMFFIEnvGetStream(2, 0)) + cuLaunchKernel(0);
  return give(result, (void *)(intptr_t)launched);
}
#endif
