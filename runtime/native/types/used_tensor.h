/* Tensors of a payload, made readable at their first use (ndarray_use), in any thread. */
#pragma once

#include <stdatomic.h>

#include "blob/arrays.h"
#include "module/module.h"

typedef dso_tensor_object *_Atomic used_tensor; /* NULL before the first use; owned */

/* The readable tensor, borrowed from `slot`. NULL with ValueError or OutOfMemoryError raised. */
dso_tensor_object *used_tensor_get(used_tensor *slot, dso_tensor_object *read);

/* Its DLTensor, for a list of tensors: one without complete data has none. Returns 0, or -1 with
 * OutOfMemoryError raised. */
int used_tensor_view(used_tensor *slot, dso_tensor_object *read, DLTensor *view);

/* Call `visit` for named arrays and their slots, as dso_module_weights. */
int used_tensors_visit(const struct named_arrays *arrays, used_tensor *used, dso_visit_weight visit,
                       void *context);

void used_tensor_clear(used_tensor *slot);
