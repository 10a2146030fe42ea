/* A model as TVM's ahead-of-time compiler leaves it: metadata, and one main function. */
#include <dso_packer.h>
#include <string.h>

struct tensor_info {
  const char *name;
  const int64_t *shape;
  int64_t num_shape;
  DLDataType dtype;
};

struct metadata {
  int64_t version;
  const struct tensor_info *inputs;
  int64_t num_inputs;
  const struct tensor_info *outputs;
  int64_t num_outputs;
  const struct tensor_info *workspace_pools;
  int64_t num_workspace_pools;
  const void *constant_pools;
  int64_t num_constant_pools;
  const char *mod_name;
};

#ifndef VERSION
#define VERSION 1
#endif
#ifndef POOLS
#define POOLS 0
#endif
#ifndef NUM_INPUTS
#define NUM_INPUTS 2
#endif
#ifndef INPUTS
#define INPUTS inputs
#endif
#ifndef NDIM
#define NDIM 2
#endif
#ifndef EXTENT
#define EXTENT 2
#endif
#ifndef BITS
#define BITS 32
#endif
#ifndef NAME
#define NAME "x"
#endif
#ifndef LINKED
#define LINKED linked
#endif

static const int64_t shape[] = {EXTENT, 3};
static const struct tensor_info inputs[] = {{NAME, shape, NDIM, {2, BITS, 1}},
                                            {"w", shape, 2, {2, 32, 1}}};
static const struct tensor_info outputs[] = {{"output", shape, 2, {2, 32, 1}}};
static const struct metadata metadata = {
    VERSION, INPUTS, NUM_INPUTS, outputs, 1, inputs, POOLS, 0, 0, "tvmgen_default"};

DSO_EXPORT int __tvm_ffi_get_c_metadata(void *handle, const dso_any *args, int32_t num_args,
                                        dso_any *result) {
  (void)handle, (void)args, (void)num_args;
  result->type_index = DSO_OPAQUE_PTR;
  result->v_ptr = (void *)&metadata;
  return 0;
}

DSO_EXPORT int __tvm_ffi_tvmgen_default___tvm_main__(void *handle, const dso_any *args,
                                                     int32_t num_args, dso_any *result) {
  const float *x = ((DLTensor *)args[0].v_ptr)->data, *w = ((DLTensor *)args[1].v_ptr)->data;
  float *y = ((DLTensor *)args[2].v_ptr)->data;
  (void)handle, (void)result;
  for (int i = 0; i < 6; i++) y[i] = x[i] * w[i];
  return num_args == 3 ? 0 : -1;
}

/* Parameters that were linked in, by storage_id. */
static const float linked[] __attribute__((aligned(64))) = {1, 2, 3, 4, 5, 6};

DSO_EXPORT int __tvm_ffi__lookup_linked_param(void *handle, const dso_any *args, int32_t num_args,
                                              dso_any *result) {
  (void)handle, (void)num_args;
  if (args[0].v_int64 != 1) return 0;
  result->type_index = DSO_OPAQUE_PTR;
  result->v_ptr = (void *)(LINKED);
  return 0;
}

DSO_EXPORT int __tvm_ffi_wrong_metadata(void *handle, const dso_any *args, int32_t num_args,
                                        dso_any *result) {
  (void)handle, (void)args, (void)num_args;
  result->type_index = DSO_INT;
  return 0;
}
