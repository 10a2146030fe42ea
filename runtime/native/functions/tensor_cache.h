/* Tensors by name, shared by all machines of the process: TVM's tensor cache. */
#pragma once

#include "blob/reader.h"

/* An owned Tensor object, or NULL. */
dso_object *tensor_cache_find(struct span name);
