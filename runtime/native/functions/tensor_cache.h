/* Tensors by name, shared by all machines of the process: TVM's tensor cache. */
#ifndef DSO_PACKER_FUNCTIONS_TENSOR_CACHE_H
#define DSO_PACKER_FUNCTIONS_TENSOR_CACHE_H

#include "blob/reader.h"

/* An owned Tensor object, or NULL. */
dso_object *tensor_cache_find(struct span name);

#endif
