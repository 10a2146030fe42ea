/* The function set_instrument of TVM's protocol of a virtual machine. */
#include <stdlib.h>

#include "abi/heap.h"
#include "abi/embedder.h"
#include "types/values.h"
#include "types/vm/virtual_machine.h"

/* A function, the name of a global one, or None. */
int vm_protocol_set_instrument(void *handle, const dso_any *args, int32_t num_args,
                               dso_any *result) {
  static const char function[] = "set_instrument";
  struct virtual_machine *self = handle;
  dso_any instrument = num_args == 1 ? args[0] : dso_none();
  struct span name;
  (void)result;
  if (value_count(function, num_args, 1, 1) != 0) return -1;
  if (instrument.type_index == DSO_FUNCTION || instrument.type_index == DSO_NONE) {
    any_retain(&instrument);
  } else {
    if (value_text(function, args, 0, &name) != 0) return -1;
    char *copy = heap_format("%.*s", (int)(name.size < 1024 ? name.size : 1024), name.data);
    dso_object *found = copy != NULL ? embedder.find_global(copy) : NULL;
    free(copy);
    if (found == NULL) return -1;
    instrument = any_of_object(found);
  }
  struct vm *machine = virtual_machine_get(self);
  if (machine != NULL)
    vm_set_instrument(machine, instrument.type_index == DSO_NONE ? NULL : instrument.v_ptr);
  any_release(&instrument);
  if (machine != NULL) vm_release(machine);
  return machine != NULL ? 0 : -1;
}
