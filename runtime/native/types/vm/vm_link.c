/* Binding an executable to the functions that its code calls. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "module/global.h"
#include "types/vm/vm_executable.h"

enum { MOST_LISTED = 8 };

/* The functions that were found for the table. */
struct callees {
  dso_object **items; /* by index; NULL for functions of the bytecode and built-in ones */
  size_t num_missing;
  const char *first_missing;
  struct text missing; /* the first names, for the message */
};

/* Find one function. Returns 1 with *function owned, 0, or -1 with the error raised. */
static int find(struct vm_executable *self, const char *name, dso_function **function) {
  int status = module_find_import(&self->module, name, function);
  return status != 0 ? status : global_find(name, function);
}

static void add_missing(struct callees *callees, const struct vm_function *row) {
  if (++callees->num_missing > MOST_LISTED) return;
  if (callees->num_missing == 1) callees->first_missing = row->name;
  text_add(&callees->missing, ", ", callees->num_missing > 1 ? 2 : 0);
  text_shown(&callees->missing, row->name, strlen(row->name));
}

static int find_one(struct vm_executable *self, size_t index, struct callees *callees) {
  const struct vm_function *row = &self->code.functions[index];
  dso_function *function = NULL;
  int32_t least, most;
  if (row->kind != VM_PACKED || (int64_t)index == vm_weight_row(&self->code)) return 0;
  int status = find(self, row->name, &function);
  if (status > 0) callees->items[index] = &function->object;
  if (status == 0 && !vm_builtin_arity(row->name, &least, &most)) add_missing(callees, row);
  return status < 0 ? -1 : 0;
}

struct known {
  const dso_module *left_out;
  struct names names, also;
};

static int add_names(void *context, dso_module *module) {
  struct known *known = context;
  if (module == known->left_out || module->type->visit_functions == NULL) return 0;
  return module->type->visit_functions(module, names_add_function, &known->names);
}

static int refuse_missing(struct vm_executable *self, struct callees *callees) {
  struct known known = {.left_out = &self->module};
  struct text text = {0};
  text_format(&text, "<VMExecutable '%s'>: its code calls %s", self->module.type_key,
              text_of(&callees->missing));
  if (callees->num_missing > MOST_LISTED)
    text_format(&text, " and %zu more", callees->num_missing - MOST_LISTED);
  text_format(&text, ", which no import has, and which is neither a global function nor built in; "
                     "runtime.register_func or dso_register_function can provide it");
  text_check(&text, module_visit(&self->module, add_names, &known));
  text_check(&text, global_names(&known.names));
  text_check(&text, built_in_add_names(&known.also));
  names_add_near(&text, &known.names, &known.also, callees->first_missing);
  names_clear(&known.names);
  names_clear(&known.also);
  return text_raise(&text, "FunctionNotFoundError");
}

static int find_all(struct vm_executable *self, struct callees *callees) {
  callees->items = heap_new_zeroed(self->code.num_functions + 1, sizeof *callees->items);
  if (callees->items == NULL)
    return raised_format("OutOfMemoryError", "no memory for a virtual machine");
  for (size_t i = 0; i < self->code.num_functions; i++)
    if (find_one(self, i, callees) != 0) return -1;
  return callees->num_missing == 0 ? 0 : refuse_missing(self, callees);
}

/* Data of another size than the tensor's can be carried, but not computed with. */
static int check_constants(const struct vm_executable *self) {
  for (size_t i = 0; i < self->code.num_constants; i++) {
    const dso_any *value = &self->constants[i];
    if (value->type_index == DSO_TENSOR && tensor_object_flags(value->v_ptr) & TENSOR_INCOMPLETE)
      return raised_format("ValueError",
                           "constant %zu: expected a complete tensor, found an incomplete one", i);
  }
  return 0;
}

struct vm *vm_link(struct vm_executable *self, const DLDevice *devices, size_t num_devices) {
  struct callees callees = {0};
  dso_any *weights = NULL;
  struct vm *vm = NULL;
  if (check_constants(self) == 0 && find_all(self, &callees) == 0 &&
      vm_weights_find(self, &weights) == 0) {
    const struct vm_parts parts = {self->constants, weights, callees.items};
    vm = vm_new(&self->code, &parts, devices, num_devices);
  }
  vm_weights_free(self, &weights);
  for (size_t i = 0; callees.items != NULL && i < self->code.num_functions; i++)
    if (callees.items[i] != NULL) object_release(callees.items[i]);
  free(callees.items);
  text_free(&callees.missing);
  return vm;
}
