/* vm.builtin.memory_manager.clear: free what the allocators of all machines do not use. */
#include "functions/global_functions.h"
#include "vm/allocator.h"

GLOBAL_FUNCTION(global_memory_manager_clear) {
  (void)handle, (void)args, (void)result;
  if (value_count("vm.builtin.memory_manager.clear", num_args, 0, 0) != 0) return -1;
  vm_allocators_trim();
  return 0;
}
