/* DLPack's managed tensors, around the DLTensor of dso_abi.h (dlpack.h, versions 0.x and 1.x). */
#pragma once

#include "dso_abi.h"

enum { DLPACK_CPU = 1, DLPACK_CUDA = 2, DLPACK_CUDA_HOST = 3, DLPACK_ROCM = 10 };
enum { DLPACK_MAJOR = 1 };

/* DLManagedTensorVersioned.flags */
enum { DLPACK_READ_ONLY = 1, DLPACK_IS_COPIED = 2, DLPACK_IS_PADDED = 4 };

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

/* True if each sub-byte element is padded to whole bytes. The core, and DLPack by default, pack
 * sub-byte elements. */
static inline int dlpack_is_padded(const DLManagedTensorVersioned *managed) {
  return (managed->flags & DLPACK_IS_PADDED) != 0 &&
         managed->tensor.dtype.bits * managed->tensor.dtype.lanes % 8 != 0;
}
#define DLPACK_PADDED_TEXT \
  "expected packed elements of less than a byte, found padded ones; pack them"
