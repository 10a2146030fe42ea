/* The strides of compact tensors: row-major, without gaps.
 *
 * Products are unsigned: for an invalid shape they may wrap, which is defined behaviour. */
#pragma once

#include "dso_abi.h"

/* Set the strides of a compact tensor of this shape. */
static inline void strides_set(const DLTensor *tensor) {
  uint64_t stride = 1;
  for (int32_t i = tensor->ndim; i-- > 0; stride *= (uint64_t)tensor->shape[i])
    tensor->strides[i] = (int64_t)stride;
}

/* True if the strides describe a compact tensor. Strides of extents of 1 have no meaning, and
 * DLPack allows NULL for compact strides. */
static inline int strides_are_compact(const DLTensor *tensor) {
  uint64_t stride = 1;
  for (int32_t i = tensor->ndim; tensor->strides != NULL && i-- > 0;
       stride *= (uint64_t)tensor->shape[i])
    if (tensor->shape[i] != 1 && (uint64_t)tensor->strides[i] != stride) return 0;
  return 1;
}

/* True if the elements are stored compactly; the strides of an empty tensor do not matter. */
static inline int tensor_is_compact(const DLTensor *tensor) {
  if (strides_are_compact(tensor)) return 1;
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] == 0) return 1;
  return 0;
}
