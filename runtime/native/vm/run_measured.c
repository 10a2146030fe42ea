/* The interpreter loop of machines that measure each call instruction (vm_measure). */
#include "vm/loop.h"

int vm_execute_measured(struct vm_run *run, dso_any *result) {
  return vm_loop(run, result, run->vm->costs, 0);
}
