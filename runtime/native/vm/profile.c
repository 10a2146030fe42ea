/* The clock of machines that measure, and what they have measured. */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#include "vm/profile.h"

#include <time.h>

#include "abi/heap.h"
#include "vm/vm.h"

int64_t vm_now(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int vm_measure(struct vm *vm) {
  vm->costs = heap_new_zeroed(vm->num_instructions + 1, sizeof *vm->costs);
  return vm->costs != NULL ? 0 : vm_out_of_memory();
}

/* Routines follow each other, so it is the last one that begins before the instruction. */
const struct vm_routine *vm_routine_at(const struct vm *vm, size_t index) {
  const struct vm_routine *found = NULL;
  for (size_t i = 0; i < vm->num_functions; i++) {
    const struct vm_routine *routine = &vm->routines[i];
    if (routine->first == NULL || routine->first > &vm->instructions[index]) continue;
    if (found == NULL || routine->first >= found->first) found = routine;
  }
  return found;
}
