/* The virtual machine: created, shared and freed. */
#include <stdlib.h>

#include "abi/dlpack.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "vm/vm.h"

int vm_out_of_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for a virtual machine");
}

/* There is one CPU, whatever number a model gives it. */
static int add_allocator(struct vm *vm, DLDevice device) {
  if (device.device_type == DLPACK_CPU) device.device_id = 0;
  vm->allocators[vm->num_allocators] = vm_allocator_new(device);
  if (vm->allocators[vm->num_allocators] == NULL) return -1;
  vm->num_allocators++;
  return 0;
}

/* Shapes are computed on the CPU, so its allocator is always the last one. */
static int add_allocators(struct vm *vm, const DLDevice *devices, size_t count) {
  vm->allocators = heap_new_zeroed(count + 1, sizeof *vm->allocators);
  if (vm->allocators == NULL) return vm_out_of_memory();
  for (size_t i = 0; i < count; i++)
    if (add_allocator(vm, devices[i]) != 0) return -1;
  if (count > 0 && devices[count - 1].device_type == DLPACK_CPU) return 0;
  return add_allocator(vm, (DLDevice){DLPACK_CPU, 0});
}

struct vm *vm_new(const struct vm_code *code, const struct vm_parts *parts, const DLDevice *devices,
                  size_t num_devices) {
  struct vm *vm = heap_new_zeroed(1, sizeof *vm);
  if (vm == NULL) {
    vm_out_of_memory();
    return NULL;
  }
  vm->references = 1;
  pthread_mutex_init(&vm->lock, NULL);
  if (add_allocators(vm, devices, num_devices) == 0 && vm_bind(vm, code, parts) == 0) return vm;
  vm_release(vm);
  return NULL;
}

void vm_retain(struct vm *vm) {
  atomic_fetch_add_explicit(&vm->references, 1, memory_order_relaxed);
}

static void free_machine(struct vm *vm) {
  for (size_t i = 0; i < vm->num_values; i++) any_release(&vm->values[i]);
  for (size_t i = 0; i < vm->num_functions; i++)
    if (vm->callees[i] != NULL) object_release(vm->callees[i]);
  if (vm->instrument != NULL) object_release(&vm->instrument->object);
  pthread_mutex_destroy(&vm->lock);
  for (size_t i = 0; i < vm->num_allocators; i++) vm_allocator_close(vm->allocators[i]);
  free(vm->routines);
  free(vm->callees);
  free(vm->instructions);
  free(vm->rows);
  free(vm->costs);
  free(vm->operands);
  free(vm->values);
  free(vm->allocators);
  free(vm->names);
  free(vm);
}

void vm_release(struct vm *vm) {
  if (atomic_fetch_sub_explicit(&vm->references, 1, memory_order_acq_rel) == 1) free_machine(vm);
}
