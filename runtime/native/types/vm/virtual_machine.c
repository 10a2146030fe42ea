/* relax.VirtualMachine: the state of a machine, and its functions. */
#include "types/vm/virtual_machine.h"

#include <string.h>

/* ---- The state */

static void replace(struct virtual_machine *self, struct vm *machine, int only_if_none,
                    struct vm **unused) {
  pthread_mutex_lock(&self->lock);
  *unused = machine;
  if (!only_if_none || self->machine == NULL) {
    *unused = self->machine;
    self->machine = machine;
  }
  pthread_mutex_unlock(&self->lock);
}

void virtual_machine_set(struct virtual_machine *self, struct vm *machine) {
  struct vm *former;
  replace(self, machine, 0, &former);
  if (former != NULL) vm_release(former);
}

static struct vm *retained(struct virtual_machine *self) {
  pthread_mutex_lock(&self->lock);
  struct vm *machine = self->machine;
  if (machine != NULL) vm_retain(machine);
  pthread_mutex_unlock(&self->lock);
  return machine;
}

struct vm *virtual_machine_get(struct virtual_machine *self) {
  struct vm *unused, *machine = retained(self);
  if (machine != NULL) return machine;
  struct vm *made = vm_link(self->executable, NULL, 0);
  if (made == NULL) return NULL;
  replace(self, made, 1, &unused);
  if (unused != NULL) vm_release(unused); /* another thread was first */
  return retained(self);
}

int virtual_machine_kept(struct virtual_machine *self, struct kept *const *list, struct span name,
                         dso_any *value) {
  pthread_mutex_lock(&self->lock);
  const dso_any *found = kept_find(*list, name);
  if (found != NULL) {
    *value = *found;
    any_retain(value);
  }
  pthread_mutex_unlock(&self->lock);
  return found != NULL;
}

int virtual_machine_keep(struct virtual_machine *self, struct kept **list, struct span name,
                         dso_any value) {
  struct kept *entry = kept_new(name, value);
  if (entry == NULL) return -1;
  pthread_mutex_lock(&self->lock);
  struct kept *former = kept_add(list, entry);
  pthread_mutex_unlock(&self->lock);
  kept_free(former);
  return 0;
}

/* ---- The module */

static int find_of_model(struct virtual_machine *self, const char *name, dso_function **function) {
  size_t row = vm_executable_row(self->executable, name, strlen(name));
  if (row == NO_NAME) return 0;
  struct vm *machine = virtual_machine_get(self);
  if (machine == NULL) return -1;
  *function = vm_function_new(&self->executable->module, vm_closure_new(&machine->routines[row]),
                              VM_OF_MODEL);
  vm_release(machine);
  return *function != NULL ? 1 : -1;
}

static int find(dso_module *module, const char *name, dso_function **function) {
  struct virtual_machine *self = (struct virtual_machine *)module;
  dso_safe_call call = vm_protocol_find(name);
  dso_any saved;
  if (call != NULL) {
    *function = module_function_new(module, call, self);
    return *function != NULL ? 1 : -1;
  }
  if (virtual_machine_kept(self, &self->saved, (struct span){name, strlen(name)}, &saved)) {
    *function = saved.v_ptr;
    return 1;
  }
  return find_of_model(self, name, function);
}

/* Entries are only appended, so they can be visited without the lock. */
static int visit_functions(dso_module *module, dso_visit_function visit, void *context) {
  struct virtual_machine *self = (struct virtual_machine *)module;
  int status = vm_executable_visit(self->executable, visit, context);
  pthread_mutex_lock(&self->lock);
  const struct kept *saved = self->saved;
  pthread_mutex_unlock(&self->lock);
  while (saved != NULL && status == 0) {
    status = visit(context, saved->name, "()");
    pthread_mutex_lock(&self->lock);
    saved = saved->next;
    pthread_mutex_unlock(&self->lock);
  }
  return status;
}

static void end(dso_module *module) {
  struct virtual_machine *self = (struct virtual_machine *)module;
  kept_free(self->saved);
  kept_free(self->inputs);
  kept_free(self->outputs);
  if (self->machine != NULL) vm_release(self->machine);
  pthread_mutex_destroy(&self->lock);
  module_release(&self->executable->module);
}

static const struct module_type virtual_machine_type = {
    .find = find,
    .visit_functions = visit_functions,
    .end = end,
};

dso_module *virtual_machine_new(struct vm_executable *executable) {
  static const char key[] = "relax.VirtualMachine";
  struct virtual_machine *self =
      module_new(&virtual_machine_type, (struct span){key, sizeof key - 1}, sizeof *self,
                 executable->module.owner);
  if (self == NULL) return NULL;
  pthread_mutex_init(&self->lock, NULL);
  self->executable = executable;
  module_retain(&executable->module);
  return &self->module;
}
