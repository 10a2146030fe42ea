/* DLPack's managed tensors, around the DLTensor of dso_abi.h (dlpack.h, versions 0.x and 1.x). */
#ifndef DSO_PACKER_NATIVE_DLPACK_H
#define DSO_PACKER_NATIVE_DLPACK_H

#include "../include/dso_abi.h"

enum { DLPACK_CPU = 1, DLPACK_CUDA_HOST = 3, DLPACK_MAJOR = 1, DLPACK_READ_ONLY = 1, DLPACK_IS_COPIED = 2 };

typedef struct DLManagedTensor {
  DLTensor tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self); /* may be NULL */
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self); /* may be NULL */
  uint64_t flags;
  DLTensor tensor;
} DLManagedTensorVersioned;

#endif
