#include "dlpack.h"
#include "dtype.h"
#include "raised.h"
#include "strides.h"
#include "tensor_object.h"
#include "vm.h"

/* Elements of fewer bits than a byte are packed, but for a uint1, which is TVM's old bool. */
static size_t bits_of(DLDataType dtype) {
  size_t bits = (size_t)dtype.bits * dtype.lanes;
  return bits == 1 && dtype.code == DTYPE_UINT ? 8 : bits;
}

int vm_nbytes(DLDataType dtype, int64_t ndim, const int64_t *dims, size_t *nbytes) {
  int is_empty = 0;
  size_t bits = bits_of(dtype);
  for (int64_t i = 0; i < ndim; i++) {
    if (dims[i] < 0) return -1;
    is_empty |= dims[i] == 0;
  }
  for (int64_t i = 0; i < ndim && !is_empty; i++)
    if (__builtin_mul_overflow(bits, (size_t)dims[i], &bits)) return -1;
  *nbytes = is_empty ? 0 : bits / 8 + (bits % 8 != 0);
  return 0;
}

struct vm_pool *vm_host_pool(const struct vm *vm) { return vm->pools[vm->num_pools - 1]; }

dso_tensor_object *vm_tensor_new(struct vm_pool *pool, DLDataType dtype, int32_t ndim,
                                 const int64_t *dims) {
  size_t nbytes;
  if (vm_nbytes(dtype, ndim, dims, &nbytes) != 0) {
    raised_set("ValueError", "a tensor with extents that are negative or too large");
    return NULL;
  }
  struct vm_storage *storage = vm_pool_alloc(pool, nbytes);
  if (storage == NULL) return NULL;
  dso_tensor_object *tensor = vm_tensor_view(dtype, ndim, dims, &storage->object);
  if (tensor == NULL) return NULL;
  tensor->tensor.data = storage->data;
  tensor->tensor.device = vm_pool_device(pool);
  return tensor;
}

/* Compiled code asks for the strides of empty tensors, too. */
int vm_tensor_is_fit(const DLTensor *tensor) {
  if (!strides_are_set(tensor)) return 0;
  if (tensor->device.device_type != DLPACK_CPU) return 1;
  return tensor->byte_offset == 0 && (uintptr_t)tensor->data % VM_ALIGNMENT == 0;
}

/* Elements of a few bits cannot be copied one by one. */
static int refuse_packed(void) {
  return raised_format("ValueError", "a tensor of elements that share bytes, expected one that is "
                       "aligned to %d bytes and on the machine's device", VM_ALIGNMENT);
}

dso_tensor_object *vm_tensor_copy(struct vm_pool *pool, const DLTensor *tensor) {
  if (bits_of(tensor->dtype) % 8 != 0 && refuse_packed() != 0) return NULL;
  dso_tensor_object *copy = vm_tensor_new(pool, tensor->dtype, tensor->ndim, tensor->shape);
  if (copy == NULL || tensor_copy(&copy->tensor, tensor) == 0) return copy;
  object_release(&copy->object);
  return NULL;
}

/* Where a copy of a tensor goes: to the machine's pool of its device, else to the CPU's. */
static struct vm_pool *pool_like(const struct vm *vm, const DLTensor *tensor) {
  for (size_t i = 0; i < vm->num_pools; i++) {
    DLDevice device = vm_pool_device(vm->pools[i]);
    if (device.device_type == tensor->device.device_type &&
        device.device_id == tensor->device.device_id)
      return vm->pools[i];
  }
  return vm_host_pool(vm);
}

int vm_own(const struct vm *vm, dso_any *value) {
  if (value->type_index != DSO_DLTENSOR_PTR) return 0;
  const DLTensor *lent = value->v_ptr;
  dso_tensor_object *copy = vm_tensor_copy(pool_like(vm, lent), lent);
  *value = (dso_any){.type_index = DSO_NONE};
  if (copy == NULL) return -1;
  *value = any_of_object(copy);
  return 0;
}
