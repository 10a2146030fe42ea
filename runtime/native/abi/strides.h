/* The strides of compact tensors: row-major, without gaps. No Python.h.
 *
 * Products are unsigned: those of a shape that lies may wrap, but never overflow. */
#ifndef DSO_PACKER_ABI_STRIDES_H
#define DSO_PACKER_ABI_STRIDES_H

#include "dso_abi.h"

/* Fill the strides by the shape. */
static inline void strides_set(const DLTensor *tensor) {
  uint64_t stride = 1;
  for (int32_t i = tensor->ndim; i-- > 0; stride *= (uint64_t)tensor->shape[i])
    tensor->strides[i] = (int64_t)stride;
}

/* Whether the strides are these, but for extents of 1, where they say nothing; DLPack allows NULL
 * for them. */
static inline int strides_are_compact(const DLTensor *tensor) {
  uint64_t stride = 1;
  for (int32_t i = tensor->ndim; tensor->strides != NULL && i-- > 0;
       stride *= (uint64_t)tensor->shape[i])
    if (tensor->shape[i] != 1 && (uint64_t)tensor->strides[i] != stride) return 0;
  return 1;
}

/* Whether the elements lie so: where there are none, the strides may be any. */
static inline int tensor_is_compact(const DLTensor *tensor) {
  if (strides_are_compact(tensor)) return 1;
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] == 0) return 1;
  return 0;
}

#endif
