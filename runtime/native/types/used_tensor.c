/* Tensors of a payload, made readable at their first use. */
#include "types/used_tensor.h"

dso_tensor_object *used_tensor_get(used_tensor *slot, dso_tensor_object *read) {
  dso_tensor_object *used = atomic_load(slot), *made = read;
  if (used != NULL) return used;
  object_retain(&read->object);
  if (ndarray_use(&made) != 0) {
    object_release(&made->object);
    return NULL;
  }
  if (atomic_compare_exchange_strong(slot, &used, made)) return made;
  object_release(&made->object); /* another thread was first */
  return used;
}

int used_tensor_view(used_tensor *slot, dso_tensor_object *read, DLTensor *view) {
  if (tensor_object_flags(&read->object) & TENSOR_INCOMPLETE) {
    *view = read->tensor;
    view->data = NULL;
    view->byte_offset = 0;
    return 0;
  }
  const dso_tensor_object *used = used_tensor_get(slot, read);
  if (used == NULL) return -1;
  *view = used->tensor;
  return 0;
}

int used_tensors_visit(const struct named_arrays *arrays, used_tensor *used, dso_visit_weight visit,
                       void *context) {
  int status = 0;
  for (size_t i = 0; i < arrays->count && status == 0; i++) {
    DLTensor tensor;
    status = used_tensor_view(&used[i], arrays->items[i].tensor, &tensor);
    if (status == 0) status = visit(context, arrays->items[i].name.data, &tensor);
  }
  return status;
}

void used_tensor_clear(used_tensor *slot) {
  dso_tensor_object *used = atomic_load(slot);
  if (used != NULL) object_release(&used->object);
}
