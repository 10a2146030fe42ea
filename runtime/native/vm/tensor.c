/* Tensors of the virtual machine: allocation, copies and alignment. */
#include "abi/dlpack.h"
#include "abi/dtype.h"
#include "abi/raised.h"
#include "abi/segment.h"
#include "abi/strides.h"
#include "device/tensor_object.h"
#include "vm/vm.h"

int vm_nbytes(const char *what, DLDataType dtype, int64_t ndim, const int64_t *dims,
              size_t *nbytes) {
  if (dtype_nbytes(dtype, ndim, dims, nbytes) == 0) return 0;
  return raised_format("ValueError",
                       "%s has a data type of 0 bits, or extents that are negative or too large",
                       what);
}

struct vm_allocator *vm_host_allocator(const struct vm *vm) {
  return vm->allocators[vm->num_allocators - 1];
}

dso_tensor_object *vm_tensor_new(struct vm_allocator *allocator, DLDataType dtype, int32_t ndim,
                                 const int64_t *dims) {
  size_t nbytes;
  if (vm_nbytes("a tensor", dtype, ndim, dims, &nbytes) != 0) return NULL;
  struct vm_storage *storage = vm_allocator_alloc(allocator, nbytes);
  if (storage == NULL) return NULL;
  dso_tensor_object *tensor = tensor_object_view(dtype, ndim, dims, &storage->object);
  if (tensor == NULL) return NULL;
  tensor->tensor.data = storage->data;
  tensor->tensor.device = vm_allocator_device(allocator);
  return tensor;
}

/* Compiled code also checks the strides of empty tensors. */
int vm_tensor_is_compatible(const DLTensor *tensor, size_t alignment) {
  if (!strides_are_compact(tensor)) return 0;
  if (tensor->device.device_type != DLPACK_CPU) return 1;
  return tensor->byte_offset == 0 && (uintptr_t)tensor->data % alignment == 0;
}

dso_tensor_object *vm_tensor_copy(struct vm_allocator *allocator, const DLTensor *tensor) {
  dso_tensor_object *copy = vm_tensor_new(allocator, tensor->dtype, tensor->ndim, tensor->shape);
  if (copy == NULL || tensor_copy(&copy->tensor, tensor) == 0) return copy;
  object_release(&copy->object);
  return NULL;
}

dso_tensor_object *vm_tensor_copy_value(struct vm_allocator *allocator, const dso_any *value) {
  dso_tensor_object *copy = vm_tensor_copy(allocator, dso_tensor_of(value));
  if (copy != NULL && tensor_value_is_readonly(value))
    tensor_object_mark(&copy->object, TENSOR_READ_ONLY);
  return copy;
}

/* The allocator for a copy of a tensor: the allocator of the tensor's device, else the allocator of the CPU. */
static struct vm_allocator *allocator_like(const struct vm *vm, const DLTensor *tensor) {
  for (size_t i = 0; i < vm->num_allocators; i++) {
    DLDevice device = vm_allocator_device(vm->allocators[i]);
    if (device.device_type == tensor->device.device_type &&
        device.device_id == tensor->device.device_id)
      return vm->allocators[i];
  }
  return vm_host_allocator(vm);
}

int vm_own(const struct vm *vm, dso_any *value) {
  if (value->type_index != DSO_DLTENSOR_PTR) return 0;
  dso_tensor_object *copy = vm_tensor_copy_value(allocator_like(vm, value->v_ptr), value);
  *value = (dso_any){.type_index = DSO_NONE};
  if (copy == NULL) return -1;
  *value = any_of_object(copy);
  return 0;
}

int vm_bind_constant(const struct vm *vm, const dso_any *constant, dso_any *value) {
  const DLTensor *tensor = dso_tensor_of(constant);
  DLDevice device = vm_allocator_device(vm->allocators[0]);
  *value = *constant;
  if (tensor == NULL || (tensor->device.device_type == device.device_type &&
                         tensor->device.device_id == device.device_id &&
                         vm_tensor_is_compatible(tensor, VM_ALIGNMENT))) {
    any_retain(constant);
    return 0;
  }
  dso_tensor_object *copy = vm_tensor_copy_value(vm->allocators[0], constant);
  if (copy == NULL) return -1;
  *value = any_of_object(copy);
  size_t nbytes;
  if (tensor->device.device_type == DLPACK_CPU && tensor_value_is_readonly(constant) &&
      dtype_nbytes(tensor->dtype, tensor->ndim, tensor->shape, &nbytes) == 0)
    segment_give_back((const char *)tensor->data + tensor->byte_offset, nbytes);
  return 0;
}
