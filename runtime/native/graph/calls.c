/* Calls that were bound once to tensors: running them. */
#include "graph/calls.h"

#include "abi/dlpack.h"
#include "abi/strides.h"
#include "device/tensor_object.h"

static inline int call_one(const struct call *call) {
  dso_any result = {.type_index = DSO_NONE};
  if (call->address(call->handle, call->args, call->count, &result) != 0) return -1;
  if (result.type_index >= DSO_OBJECT && result.v_ptr != NULL) object_release(result.v_ptr);
  return 0;
}

size_t calls_run(const struct call *calls, size_t count) {
  size_t i = 0;
  while (i < count && call_one(&calls[i]) == 0) i++;
  return i;
}

int calls_copy(void *handle, const dso_any *args, int32_t count, dso_any *result) {
  (void)handle, (void)count, (void)result;
  return tensor_copy(args[1].v_ptr, args[0].v_ptr);
}

int call_devices_add(struct call_devices *devices, DLDevice device) {
  if (device.device_type == DLPACK_CPU) return 0;
  for (int i = 0; i < devices->count; i++)
    if (devices->items[i].device_type == device.device_type &&
        devices->items[i].device_id == device.device_id)
      return 0;
  if (devices->count == CALLS_MAX_DEVICES) return -1;
  devices->items[devices->count++] = device;
  return 0;
}

int slot_is_kind(const struct slot *slot, const DLTensor *tensor) {
  const DLTensor *own = &slot->tensor;
  int same = own->ndim == tensor->ndim && own->dtype.code == tensor->dtype.code &&
             own->dtype.bits == tensor->dtype.bits && own->dtype.lanes == tensor->dtype.lanes &&
             own->device.device_type == tensor->device.device_type &&
             own->device.device_id == tensor->device.device_id;
  for (int i = 0; same && i < own->ndim; i++) same = own->shape[i] == tensor->shape[i];
  return same;
}

int slot_is_fit(const struct slot *slot, const DLTensor *tensor, int is_readonly) {
  int is_empty = 0;
  if (!tensor_is_compact(tensor) || (is_readonly && slot->is_written)) return 0;
  if (!slot->needs_alignment || tensor->device.device_type != DLPACK_CPU) return 1;
  for (int i = 0; i < tensor->ndim; i++) is_empty |= tensor->shape[i] == 0;
  return is_empty || ((uintptr_t)tensor->data + tensor->byte_offset) % TENSOR_ALIGNMENT == 0;
}
