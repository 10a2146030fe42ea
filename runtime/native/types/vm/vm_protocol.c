/* The functions of TVM's protocol of a virtual machine (runtime/relax/machine.py). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "module/names.h"
#include "types/values.h"
#include "types/vm/virtual_machine.h"

enum { FEW = 8 };

/* Raise an error about a name. Returns -1. */
static int refuse(const char *kind, const char *before, struct span name, const char *after) {
  struct text text = {0};
  text_repr(&text, name.data, name.size);
  int status = raised_format(kind, "%s%s%s", before, text_of(&text), after);
  text_free(&text);
  return status;
}

static int no_function(struct virtual_machine *self, struct span name) {
  struct names names = {0};
  struct text text = {0};
  char *copy = heap_format("%.*s", (int)(name.size < 1024 ? name.size : 1024), name.data);
  text_format(&text, "<VirtualMachineModule 'relax.VirtualMachine'> has no function ");
  text_repr(&text, name.data, name.size);
  text.is_broken |= copy == NULL;
  text_check(&text, self->module.type->visit_functions(&self->module, names_add_function, &names));
  if (!text.is_broken) names_add_near(&text, &names, NULL, copy);
  names_clear(&names);
  free(copy);
  return text_raise(&text, "FunctionNotFoundError");
}

/* Read the argument that names a function of the model. Returns 0 with its row, or -1 with the
 * error raised. */
static int take_row(struct virtual_machine *self, const char *function, const dso_any *args,
                    struct span *name, size_t *row) {
  if (value_text(function, args, 0, name) != 0) return -1;
  *row = vm_executable_row(self->executable, name->data, name->size);
  return *row != NO_NAME ? 0 : no_function(self, *name);
}

/* ---- Binding */

/* Read one device of the three numbers for each; the third is the allocator's. */
static int take_device(const struct virtual_machine *self, const dso_any *args, int32_t index,
                       DLDevice *device) {
  static const char function[] = "vm_initialization";
  int64_t numbers[3];
  for (int32_t i = 0; i < 3; i++)
    if (value_int(function, args, index + i, &numbers[i]) != 0) return -1;
  if (numbers[0] != (int32_t)numbers[0] || numbers[1] != (int32_t)numbers[1])
    return raised_format("OverflowError", "%s: device %" PRId64 ":%" PRId64 ", expected an int32",
                         function, numbers[0], numbers[1]);
  *device = (DLDevice){(int32_t)numbers[0], (int32_t)numbers[1]};
  return device_check_allowed(&self->module, *device);
}

static int initialize(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct virtual_machine *self = handle;
  DLDevice few[FEW], *devices = few;
  int32_t count = num_args / 3;
  int status = 0;
  (void)result;
  if (num_args <= 0 || num_args % 3 != 0)
    return raised_format("ValueError", "vm_initialization: %d numbers, expected 3 per device",
                         (int)num_args);
  if (count > FEW && (devices = heap_new_zeroed((size_t)count, sizeof *devices)) == NULL)
    return raised_format("OutOfMemoryError", "no memory for %d devices", (int)count);
  for (int32_t i = 0; i < count && status == 0; i++)
    status = take_device(self, args, 3 * i, &devices[i]);
  struct vm *machine = status == 0 ? vm_link(self->executable, devices, (size_t)count) : NULL;
  if (devices != few) free(devices);
  if (machine == NULL) return -1;
  virtual_machine_set(self, machine);
  return 0;
}

/* ---- Saved calls */

/* The function to save, which must not retain this module: a function of the model or a saved one.
 * NULL with an error raised. */
static dso_object *find_to_save(struct virtual_machine *self, struct vm *machine,
                                struct span name) {
  dso_any saved;
  size_t row = vm_executable_row(self->executable, name.data, name.size);
  if (row != NO_NAME) return vm_closure_new(&machine->routines[row]);
  if (virtual_machine_kept(self, &self->saved, name, &saved)) return saved.v_ptr;
  (void)no_function(self, name);
  return NULL;
}

static int save(struct virtual_machine *self, struct vm *machine, const struct span names[2],
                const dso_array_object *values, enum vm_function_kind kind) {
  dso_object *function = find_to_save(self, machine, names[0]);
  if (function == NULL) return -1;
  dso_object *bound = vm_closure_bind(function, values->items, (int32_t)values->size);
  object_release(function);
  dso_function *saved = vm_function_new(&self->executable->module, bound, kind);
  if (saved == NULL) return -1;
  return virtual_machine_keep(self, &self->saved, names[1], any_of_object(saved));
}

static int save_function(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  static const char function[] = "save_function";
  struct virtual_machine *self = handle;
  struct span names[2];
  int64_t is_returned;
  (void)result;
  if (value_count(function, num_args, 3, INT32_MAX) != 0 ||
      value_text(function, args, 0, &names[0]) != 0 ||
      value_text(function, args, 1, &names[1]) != 0 ||
      value_int(function, args, 2, &is_returned) != 0)
    return -1;
  if (vm_executable_row(self->executable, names[1].data, names[1].size) != NO_NAME)
    return refuse("ValueError", "save_function: ", names[1], " is a function of the model");
  struct vm *machine = virtual_machine_get(self);
  if (machine == NULL) return -1;
  dso_array_object *values = vm_own_all(machine, args + 3, num_args - 3, 0);
  int status = values != NULL
                   ? save(self, machine, names, values, is_returned ? VM_SAVED : VM_SAVED_QUIET)
                   : -1;
  if (values != NULL) object_release(&values->object);
  vm_release(machine);
  return status;
}

static int invoke_closure(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle;
  if (value_count("invoke_closure", num_args, 1, INT32_MAX) != 0) return -1;
  if (args[0].type_index != DSO_FUNCTION)
    return raised_format("TypeError",
                         "invoke_closure: argument 1, expected a function, found a value of type "
                         "index %d",
                         (int)args[0].type_index);
  return vm_call_function(args[0].v_ptr, args + 1, num_args - 1, result);
}

/* ---- Calls with stored arguments */

static int refuse_count(struct span name, int64_t expected, int32_t found) {
  char text[96];
  snprintf(text, sizeof text, " takes %" PRId64 " arguments, found %d", expected, (int)found);
  return refuse("TypeError", "set_input: ", name, text);
}

static int set_input(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct virtual_machine *self = handle;
  struct span name;
  size_t row;
  (void)result;
  if (value_count("set_input", num_args, 1, INT32_MAX) != 0 ||
      take_row(self, "set_input", args, &name, &row) != 0)
    return -1;
  int64_t arity = self->executable->code.functions[row].num_params;
  if (num_args - 1 != arity) return refuse_count(name, arity, num_args - 1);
  struct vm *machine = virtual_machine_get(self);
  if (machine == NULL) return -1;
  dso_array_object *values = vm_own_all(machine, args + 1, num_args - 1, 1);
  vm_release(machine);
  if (values == NULL) return -1;
  return virtual_machine_keep(self, &self->inputs, name, any_of_object(values));
}

static int invoke(struct virtual_machine *self, struct span name, const dso_array_object *values) {
  size_t row = vm_executable_row(self->executable, name.data, name.size);
  struct vm *machine = virtual_machine_get(self);
  dso_any output = dso_none();
  if (machine == NULL) return -1;
  int status = vm_call(&machine->routines[row], values->items, (int32_t)values->size, &output);
  vm_release(machine);
  return status == 0 ? virtual_machine_keep(self, &self->outputs, name, output) : -1;
}

static int invoke_stateful(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct virtual_machine *self = handle;
  struct span name;
  dso_any values;
  (void)result;
  if (value_count("invoke_stateful", num_args, 1, 1) != 0 ||
      value_text("invoke_stateful", args, 0, &name) != 0)
    return -1;
  if (!virtual_machine_kept(self, &self->inputs, name, &values))
    return refuse("ValueError", "invoke_stateful: no input of ", name, " was set; use set_input");
  int status = invoke(self, name, values.v_ptr);
  any_release(&values);
  return status;
}

/* Replace an Array by one of its items; an index may count from the end. */
static int take_item(const dso_any *args, int32_t position, dso_any *value) {
  int64_t index;
  if (value_int("get_output", args, position, &index) != 0) return -1;
  if (value->type_index != DSO_ARRAY)
    return raised_format("TypeError", "get_output: index %" PRId64 " of an output that is no tuple",
                         index);
  const dso_array_object *array = value->v_ptr;
  if (index < 0) index += array->size;
  if (index < 0 || index >= array->size)
    return raised_format("IndexError", "tuple index out of range");
  dso_any item = array->items[index];
  any_retain(&item);
  any_release(value);
  *value = item;
  return 0;
}

static int get_output(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct virtual_machine *self = handle;
  struct span name;
  dso_any output;
  if (value_count("get_output", num_args, 1, INT32_MAX) != 0 ||
      value_text("get_output", args, 0, &name) != 0)
    return -1;
  if (!virtual_machine_kept(self, &self->outputs, name, &output))
    return refuse("ValueError", "get_output: ", name, " was not invoked; use invoke_stateful");
  for (int32_t i = 1; i < num_args; i++)
    if (take_item(args, i, &output) != 0) {
      any_release(&output);
      return -1;
    }
  *result = output;
  return 0;
}

static int get_output_arity(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  dso_any output = dso_none();
  if (get_output(handle, args, num_args, &output) != 0) return -1;
  const dso_array_object *array = output.v_ptr;
  *result = dso_int(output.type_index == DSO_ARRAY ? array->size : -1);
  any_release(&output);
  return 0;
}

/* ---- Parameters */

static int get_function_arity(void *handle, const dso_any *args, int32_t num_args,
                              dso_any *result) {
  struct virtual_machine *self = handle;
  struct span name;
  size_t row;
  if (value_count("get_function_arity", num_args, 1, 1) != 0 ||
      take_row(self, "get_function_arity", args, &name, &row) != 0)
    return -1;
  *result = dso_int(self->executable->code.functions[row].num_params);
  return 0;
}

static int get_function_param_name(void *handle, const dso_any *args, int32_t num_args,
                                   dso_any *result) {
  static const char function[] = "get_function_param_name";
  struct virtual_machine *self = handle;
  struct span name;
  size_t row;
  int64_t index;
  if (value_count(function, num_args, 2, 2) != 0 ||
      take_row(self, function, args, &name, &row) != 0 || value_int(function, args, 1, &index) != 0)
    return -1;
  int64_t count = self->executable->code.functions[row].num_params;
  if (index < 0) index += count;
  if (index < 0 || index >= count) return raised_format("IndexError", "tuple index out of range");
  const struct span *param = &self->executable->rows[row].params[index];
  if (object_make_string(result, 1, param->data, param->size) == 0) return 0;
  return raised_format("OutOfMemoryError", "no memory for a name");
}

dso_safe_call vm_protocol_find(const char *name) {
  static const struct {
    const char *name;
    dso_safe_call call;
  } rows[] = {
      {"vm_initialization", initialize},
      {"invoke_closure", invoke_closure},
      {"save_function", save_function},
      {"set_instrument", vm_protocol_set_instrument},
      {"set_input", set_input},
      {"invoke_stateful", invoke_stateful},
      {"get_output", get_output},
      {"get_output_arity", get_output_arity},
      {"get_function_arity", get_function_arity},
      {"get_function_param_name", get_function_param_name},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, name) == 0) return rows[i].call;
  return NULL;
}
