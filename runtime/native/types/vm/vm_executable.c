/* relax.VMExecutable as a module. */
#include "types/vm/vm_executable.h"
#include "types/families.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/raised.h"
#include "abi/text.h"

static const struct module_type executable_type;

int load_vm_executable(struct reader *reader, struct span type_key, dso_module **module) {
  struct vm_executable *self = module_new(&executable_type, type_key, sizeof *self, reader->owner);
  if (self == NULL) return -1;
  return module_give(&self->module, vm_executable_read(self, reader), module);
}

static void end(dso_module *module) {
  struct vm_executable *self = (struct vm_executable *)module;
  struct vm *machine = atomic_load(&self->machine);
  if (machine != NULL) vm_release(machine);
  for (size_t i = 0; i < self->code.num_constants; i++) {
    any_release(&self->constants[i]);
    used_tensor_clear(&self->weights[i]);
  }
  for (size_t i = 0; i < self->code.num_functions; i++) {
    free((char *)(uintptr_t)self->code.functions[i].name);
    free(self->rows[i].params);
  }
  free(self->constants);
  free(self->weights);
  free(self->code.functions);
  free(self->rows);
  name_order_free(&self->order);
}

/* ---- Functions */

size_t vm_executable_row(const struct vm_executable *self, const char *name, size_t nbytes) {
  size_t row = name_order_find(&self->order, name, nbytes);
  return row != NO_NAME && self->code.functions[row].kind != VM_PACKED ? row : NO_NAME;
}

/* The machine is made without a lock, since look-ups in imports run other code. Of two threads that
 * make one, the first stores it. */
static struct vm *machine_of(struct vm_executable *self) {
  struct vm *machine = atomic_load(&self->machine), *made;
  if (machine != NULL || (made = vm_link(self, NULL, 0)) == NULL) return machine;
  if (atomic_compare_exchange_strong(&self->machine, &machine, made)) return made;
  vm_release(made);
  return machine;
}

static int make_machine(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)args;
  if (num_args != 0)
    return raised_format("TypeError", "vm_load_executable: expected 0 arguments, found %d",
                         (int)num_args);
  dso_module *machine = virtual_machine_new(handle);
  if (machine == NULL) return -1;
  *result = any_of_object(machine);
  return 0;
}

/* Store a function of the model, or of a call with a session. */
static int find_of_model(struct vm_executable *self, struct session *session, const char *name,
                         dso_function **function) {
  size_t row = vm_executable_row(self, name, strlen(name));
  if (row == NO_NAME) return 0;
  struct vm *machine = machine_of(self);
  if (machine == NULL) return -1;
  const struct vm_routine *routine = &machine->routines[row];
  dso_object *called =
      session != NULL ? vm_session_function(routine, session) : vm_closure_new(routine);
  *function = vm_function_new(&self->module, called, VM_OF_MODEL);
  return *function != NULL ? 1 : -1;
}

static int find_with(dso_module *module, struct session *session, const char *name,
                     dso_function **function) {
  return find_of_model((struct vm_executable *)module, session, name, function);
}

static int find(dso_module *module, const char *name, dso_function **function) {
  struct vm_executable *self = (struct vm_executable *)module;
  if (strcmp(name, "vm_load_executable") == 0) {
    *function = module_function_new(module, make_machine, self);
    return *function != NULL ? 1 : -1;
  }
  return find_of_model(self, NULL, name, function);
}

/* The declaration without the name: "(x, w)". Types are not known. */
static void add_signature(struct text *text, const struct vm_executable *self, size_t row) {
  const struct span *params = self->rows[row].params;
  text_add(text, "(", 1);
  for (int64_t i = 0; i < self->code.functions[row].num_params; i++) {
    text_add(text, ", ", i > 0 ? 2 : 0);
    text_add(text, params[i].data, params[i].size);
  }
  text_add(text, ")", 1);
}

int vm_executable_visit(const struct vm_executable *self, dso_visit_function visit, void *context) {
  int status = 0;
  for (size_t row = 0; row < self->code.num_functions && status == 0; row++) {
    if (self->code.functions[row].kind == VM_PACKED) continue;
    struct text signature = {0};
    add_signature(&signature, self, row);
    status = visit(context, self->code.functions[row].name, text_of(&signature));
    text_free(&signature);
  }
  return status;
}

static int visit_functions(dso_module *module, dso_visit_function visit, void *context) {
  return vm_executable_visit((struct vm_executable *)module, visit, context);
}

/* ---- Weights: the constants that are tensors, by "constant_<index>" */

static const char PREFIX[] = "constant_";
enum { NAME_SIZE = sizeof PREFIX + 20 };

static int is_weight(const struct vm_executable *self, size_t index) {
  return index < self->code.num_constants && self->constants[index].type_index == DSO_TENSOR;
}

static int visit_weights(dso_module *module, dso_visit_weight visit, void *context) {
  struct vm_executable *self = (struct vm_executable *)module;
  char name[NAME_SIZE];
  int status = 0;
  for (size_t i = 0; i < self->code.num_constants && status == 0; i++) {
    DLTensor tensor;
    if (!is_weight(self, i)) continue;
    snprintf(name, sizeof name, "%s%zu", PREFIX, i);
    status = used_tensor_view(&self->weights[i], self->constants[i].v_ptr, &tensor);
    if (status == 0) status = visit(context, name, &tensor);
  }
  return status;
}

static int weight(dso_module *module, const char *name, DLTensor *tensor) {
  struct vm_executable *self = (struct vm_executable *)module;
  char same[NAME_SIZE];
  if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0) return 0;
  size_t index = strtoul(name + sizeof PREFIX - 1, NULL, 10);
  snprintf(same, sizeof same, "%s%zu", PREFIX, index);
  if (strcmp(name, same) != 0 || !is_weight(self, index)) return 0;
  const dso_tensor_object *found =
      used_tensor_get(&self->weights[index], self->constants[index].v_ptr);
  if (found == NULL) return -1;
  *tensor = found->tensor;
  return 1;
}

static const struct module_type executable_type = {
    .find = find,
    .find_with = find_with,
    .visit_functions = visit_functions,
    .visit_weights = visit_weights,
    .weight = weight,
    .end = end,
};
