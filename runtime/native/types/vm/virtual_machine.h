/* relax.VirtualMachine: a module with the functions of TVM's protocol. */
#pragma once

#include <pthread.h>

#include "types/kept.h"
#include "types/vm/vm_executable.h"

struct virtual_machine {
  dso_module module;
  struct vm_executable *executable;
  pthread_mutex_t lock; /* of the members below; no function is called and nothing is released
                           under it */
  struct vm *machine;   /* NULL before its first use */
  struct kept *saved;   /* Functions that save_function made */
  struct kept *inputs;  /* Arrays of arguments, by function */
  struct kept *outputs; /* results, by function */
};

/* Its machine, retained; made for the CPU at the first use. NULL with an error raised. */
struct vm *virtual_machine_get(struct virtual_machine *self);
/* Replace it; takes over the reference. */
void virtual_machine_set(struct virtual_machine *self, struct vm *machine);

/* Copy the value of a name, retained. Returns 1, or 0 without one. */
int virtual_machine_kept(struct virtual_machine *self, struct kept *const *list, struct span name,
                         dso_any *value);
/* Store a value, which is taken over, also on failure. Returns 0, or -1 with OutOfMemoryError. */
int virtual_machine_keep(struct virtual_machine *self, struct kept **list, struct span name,
                         dso_any value);

/* An Array of arguments that owns its data, on the machine's first device if `is_on_device`. NULL
 * with an error raised (vm_inputs.c). */
dso_array_object *vm_own_all(const struct vm *vm, const dso_any *args, int32_t count,
                             int is_on_device);

/* A safe call whose handle is the module, by its name; or NULL (vm_protocol.c). */
dso_safe_call vm_protocol_find(const char *name);

/* set_instrument, a safe call of that kind (vm_instrument.c). */
int vm_protocol_set_instrument(void *handle, const dso_any *args, int32_t num_args,
                               dso_any *result);
