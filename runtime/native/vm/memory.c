/* The built-in functions that make, move and read tensors. */
#include <inttypes.h>
#include <string.h>

#include "abi/dlpack.h"
#include "abi/dtype.h"
#include "abi/raised.h"
#include "abi/strides.h"
#include "device/tensor_object.h"
#include "vm/builtin.h"

/* A device has one kind of memory here, "global"; TVM names textures and memory on the chip too. An
 * argument that is missing, None or empty is "global". */
static int check_scope(const char *name, DLDevice device, const dso_any *args, int32_t num_args,
                       int32_t number) {
  static const char global[] = "global";
  const char *scope;
  size_t nbytes;
  if (number >= num_args || args[number].type_index == DSO_NONE) return 0;
  if (!vm_read_text(&args[number], &scope, &nbytes))
    return vm_refuse_argument(name, number, "a str", &args[number]);
  if (nbytes == 0 || (nbytes == strlen(global) && memcmp(scope, global, nbytes) == 0)) return 0;
  return device_error(device, 0,
                      "vm.builtin.%s: memory scope '%.*s', expected 'global'; compile the model "
                      "without this scope",
                      name, (int)(nbytes < 80 ? nbytes : 80), scope);
}

/* Context, shape of bytes, index of a device (-1: the CPU), data type, memory scope. */
VM_BUILTIN(vm_alloc_storage) {
  const struct vm *vm = vm_of_run(run);
  struct vm_dims dims;
  size_t nbytes;
  if (vm_read_dims("alloc_storage", 1, &args[1], &dims) != 0) return -1;
  if (args[2].type_index != DSO_INT) return vm_refuse_argument("alloc_storage", 2, "int", &args[2]);
  if (args[3].type_index != DSO_DATA_TYPE)
    return vm_refuse_argument("alloc_storage", 3, "a dtype", &args[3]);
  int64_t index = args[2].v_int64 == -1 ? (int64_t)vm->num_allocators - 1 : args[2].v_int64;
  if (index < 0 || (uint64_t)index >= vm->num_allocators)
    return raised_format("DeviceError",
                         "the code uses device %" PRId64 " of the machine, expected less than "
                         "%zu; pass more devices to VirtualMachine",
                         index, vm->num_allocators);
  if (check_scope("alloc_storage", vm_allocator_device(vm->allocators[index]), args, num_args, 4) !=
      0)
    return -1;
  if (vm_nbytes("vm.builtin.alloc_storage: a storage", args[3].v_dtype, dims.ndim, dims.dims,
                &nbytes) != 0)
    return -1;
  vm_count_bytes(run, nbytes);
  struct vm_storage *storage = vm_allocator_alloc(vm->allocators[index], nbytes);
  if (storage == NULL) return -1;
  *result = any_of_object(storage);
  return 0;
}

/* A tensor at an offset in a storage, which it retains. On the CPU the offset is added to the data
 * pointer, since compiled code requires a byte_offset of 0. */
static dso_tensor_object *place(struct vm_storage *storage, int64_t offset, DLDataType dtype,
                                const struct vm_dims *dims) {
  object_retain(&storage->object);
  dso_tensor_object *tensor =
      tensor_object_view(dtype, (int32_t)dims->ndim, dims->dims, &storage->object);
  if (tensor == NULL) return NULL;
  tensor->tensor.device = vm_allocator_device(storage->allocator);
  tensor->tensor.data = storage->data;
  if (tensor->tensor.device.device_type == DLPACK_CPU)
    tensor->tensor.data = (char *)storage->data + offset;
  else tensor->tensor.byte_offset = (uint64_t)offset;
  return tensor;
}

static int refuse_piece(const struct vm_storage *storage, int64_t offset) {
  return raised_format("ValueError",
                       "vm.builtin.alloc_tensor: the tensor at offset %" PRId64
                       " is not within its storage of %zu bytes",
                       offset, storage->nbytes);
}

/* Storage, offset in bytes, shape, data type, and in newer models the memory scope. */
VM_BUILTIN(vm_alloc_tensor) {
  struct vm_storage *storage = vm_storage_of(&args[0]);
  struct vm_dims dims;
  size_t nbytes;
  (void)run;
  if (storage == NULL) return vm_refuse_argument("alloc_tensor", 0, "a storage", &args[0]);
  if (args[1].type_index != DSO_INT) return vm_refuse_argument("alloc_tensor", 1, "int", &args[1]);
  if (vm_read_dims("alloc_tensor", 2, &args[2], &dims) != 0) return -1;
  if (args[3].type_index != DSO_DATA_TYPE)
    return vm_refuse_argument("alloc_tensor", 3, "a dtype", &args[3]);
  if (check_scope("alloc_tensor", vm_allocator_device(storage->allocator), args, num_args, 4) != 0)
    return -1;
  int64_t offset = args[1].v_int64;
  if (dtype_nbytes(args[3].v_dtype, dims.ndim, dims.dims, &nbytes) != 0 || offset < 0 ||
      (uint64_t)offset > storage->nbytes || nbytes > storage->nbytes - (size_t)offset)
    return refuse_piece(storage, offset);
  dso_tensor_object *tensor = place(storage, offset, args[3].v_dtype, &dims);
  if (tensor == NULL) return -1;
  *result = any_of_object(tensor);
  return 0;
}

/* ---- Views and copies */

static int give(dso_tensor_object *tensor, dso_any *result) {
  if (tensor == NULL) return -1;
  *result = any_of_object(tensor);
  return 0;
}

static int give_copy(struct vm_run *run, dso_tensor_object *copy, dso_any *result) {
  size_t nbytes;
  if (copy == NULL) return -1;
  const DLTensor *tensor = &copy->tensor;
  if (dtype_nbytes(tensor->dtype, tensor->ndim, tensor->shape, &nbytes) == 0)
    vm_count_bytes(run, nbytes);
  return give(copy, result);
}

/* A view of a tensor's memory from `offset` on, as a compact tensor. The view of an object retains
 * it; that of a borrowed tensor is valid until the run ends. Both inherit the read-only mark. */
static int give_view(struct vm_run *run, const dso_any *value, DLDataType dtype,
                     const struct vm_dims *dims, uint64_t offset, dso_any *result) {
  const DLTensor *tensor = dso_tensor_of(value);
  DLTensor *view;
  if (value->type_index == DSO_TENSOR) {
    object_retain(value->v_ptr);
    dso_tensor_object *object =
        tensor_object_view(dtype, (int32_t)dims->ndim, dims->dims, value->v_ptr);
    if (give(object, result) != 0) return -1;
    view = &object->tensor;
  } else {
    view = vm_borrow_view(run, tensor, (int32_t)dims->ndim, dims->dims);
    if (view == NULL) return -1;
    *result = *value;
    result->v_ptr = view;
  }
  view->dtype = dtype;
  view->data = tensor->data;
  view->device = tensor->device;
  view->byte_offset = tensor->byte_offset + offset;
  return 0;
}

/* A view of the same elements with another shape. */
VM_BUILTIN(vm_reshape) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  struct vm_dims dims;
  size_t nbytes, wanted;
  (void)num_args;
  if (tensor == NULL) return vm_refuse_argument("reshape", 0, "a tensor", &args[0]);
  if (vm_read_dims("reshape", 1, &args[1], &dims) != 0) return -1;
  if (dtype_nbytes(tensor->dtype, tensor->ndim, tensor->shape, &nbytes) != 0 ||
      dtype_nbytes(tensor->dtype, dims.ndim, dims.dims, &wanted) != 0 || wanted != nbytes ||
      !strides_are_compact(tensor))
    return raised_format("ValueError",
                         "vm.builtin.reshape: expected a contiguous tensor, and a shape with the "
                         "same number of elements");
  return give_view(run, &args[0], tensor->dtype, &dims, 0, result);
}

static int refuse_view(int64_t offset, size_t wanted, size_t nbytes) {
  return raised_format("ValueError",
                       VM_VIEW ": a view of %zu bytes at offset %" PRId64
                               ", expected one within the %zu bytes of the tensor; pass another "
                               "shape, data type or offset",
                       wanted, offset, nbytes);
}

/* R.memory.view: tensor, shape, data type, offset in bytes. As in TVM the offset is that of the
 * view, not added to its data pointer: operators that expect 0 refuse it. */
VM_BUILTIN(vm_view) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  struct vm_dims dims;
  size_t nbytes, wanted;
  (void)num_args;
  if (tensor == NULL) return vm_refuse_argument(VM_VIEW, 0, "a tensor", &args[0]);
  if (vm_read_dims(VM_VIEW, 1, &args[1], &dims) != 0) return -1;
  if (args[2].type_index != DSO_DATA_TYPE)
    return vm_refuse_argument(VM_VIEW, 2, "a dtype", &args[2]);
  if (args[3].type_index != DSO_INT) return vm_refuse_argument(VM_VIEW, 3, "int", &args[3]);
  if (vm_nbytes(VM_VIEW ": the tensor", tensor->dtype, tensor->ndim, tensor->shape, &nbytes) != 0 ||
      vm_nbytes(VM_VIEW ": the view", args[2].v_dtype, dims.ndim, dims.dims, &wanted) != 0)
    return -1;
  if (!tensor_is_compact(tensor))
    return raised_format("ValueError", VM_VIEW ": expected a contiguous tensor, found strides");
  int64_t offset = args[3].v_int64;
  if (offset < 0 || (uint64_t)offset > nbytes || wanted > nbytes - (size_t)offset)
    return refuse_view(offset, wanted, nbytes);
  return give_view(run, &args[0], args[2].v_dtype, &dims, (uint64_t)offset, result);
}

/* A model may number CPUs, as cpu:1; their memory is one. */
static struct vm_allocator *allocator_of(const struct vm *vm, int64_t device_type,
                                         int64_t device_id) {
  if (device_type == DLPACK_CPU) return vm_host_allocator(vm);
  for (size_t i = 0; i < vm->num_allocators; i++) {
    DLDevice device = vm_allocator_device(vm->allocators[i]);
    if (device.device_type == device_type && device.device_id == device_id)
      return vm->allocators[i];
  }
  return raised_null("DeviceError",
                     "the code uses device type %" PRId64 ", id %" PRId64
                     ", which is not a device of the machine; pass it to VirtualMachine",
                     device_type, device_id);
}

/* Tensor, device type, device id, memory scope. */
VM_BUILTIN(vm_to_device) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  if (tensor == NULL) return vm_refuse_argument("to_device", 0, "a tensor", &args[0]);
  for (int i = 1; i < 3; i++)
    if (args[i].type_index != DSO_INT) return vm_refuse_argument("to_device", i, "int", &args[i]);
  struct vm_allocator *allocator = allocator_of(vm_of_run(run), args[1].v_int64, args[2].v_int64);
  if (allocator == NULL) return -1;
  DLDevice device = vm_allocator_device(allocator);
  if (check_scope("to_device", device, args, num_args, 3) != 0) return -1;
  if (tensor->device.device_type != device.device_type ||
      tensor->device.device_id != device.device_id)
    return give_copy(run, vm_tensor_copy(allocator, tensor), result);
  any_retain(&args[0]);
  *result = args[0];
  return 0;
}

/* Add the offset of a view to its data pointer. */
static int fold_offset(struct vm_run *run, const dso_any *value, dso_any *result) {
  const DLTensor *tensor = dso_tensor_of(value);
  const struct vm_dims dims = {.dims = tensor->shape, .ndim = tensor->ndim};
  if (give_view(run, value, tensor->dtype, &dims, 0, result) != 0) return -1;
  DLTensor *view = result->type_index == DSO_TENSOR ? &((dso_tensor_object *)result->v_ptr)->tensor
                                                    : result->v_ptr;
  view->data = (char *)view->data + view->byte_offset;
  view->byte_offset = 0;
  return 0;
}

/* The tensor itself if its byte_offset is 0. Otherwise, as in TVM, a view if its address is a pointer
 * that is still aligned, or else a copy. */
VM_BUILTIN(vm_ensure_zero_offset) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  (void)num_args;
  if (tensor == NULL) return vm_refuse_argument("ensure_zero_offset", 0, "a tensor", &args[0]);
  if (tensor->byte_offset == 0) return vm_copy(run, args, 1, result);
  if (tensor->device.device_type == DLPACK_CPU && tensor->byte_offset % VM_ALIGNMENT == 0 &&
      strides_are_compact(tensor))
    return fold_offset(run, &args[0], result);
  struct vm_allocator *allocator =
      allocator_of(vm_of_run(run), tensor->device.device_type, tensor->device.device_id);
  return allocator != NULL ? give_copy(run, vm_tensor_copy_value(allocator, &args[0]), result) : -1;
}

/* ---- Reading */

static int is_scalar_condition(const DLTensor *tensor) {
  int code = tensor->dtype.code, bits = tensor->dtype.bits;
  for (int32_t i = 0; i < tensor->ndim; i++)
    if (tensor->shape[i] != 1) return 0;
  return (code == DTYPE_INT || code == DTYPE_UINT || code == DTYPE_BOOL) &&
         tensor->dtype.lanes == 1 &&
         (bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

/* Copy the bytes of a scalar from its device. */
static int fetch(const DLTensor *tensor, unsigned char *bytes, size_t nbytes) {
  const struct device_memory from = {tensor->device, tensor->data, (size_t)tensor->byte_offset};
  const struct device_memory to = {{DLPACK_CPU, 0}, bytes, 0};
  const struct device_api *api = device_api(tensor->device.device_type);
  return api != NULL ? api->copy(&to, &from, nbytes) : -1;
}

/* Read a scalar as a condition: true if it is not zero. */
VM_BUILTIN(vm_read_if_cond) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  unsigned char bytes[8] = {0};
  uint64_t number;
  (void)run, (void)num_args;
  *result = (dso_any){.type_index = DSO_BOOL};
  if (args[0].type_index == DSO_BOOL || args[0].type_index == DSO_INT) {
    result->v_int64 = args[0].v_int64 != 0;
    return 0;
  }
  if (tensor == NULL || !is_scalar_condition(tensor))
    return vm_refuse_argument("read_if_cond", 0, "bool, or a tensor of one int or bool", &args[0]);
  if (fetch(tensor, bytes, dtype_itemsize(tensor->dtype)) != 0) return -1;
  memcpy(&number, bytes, sizeof number);
  result->v_int64 = number != 0;
  return 0;
}
