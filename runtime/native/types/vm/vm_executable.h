/* relax.VMExecutable: a model as bytecode, and the machines that are made of it.
 *
 * A machine refers to functions that retain modules: functions of the executable's imports, and
 * registered functions. An executable has a machine, and functions of a machine retain the
 * executable; a machine refers to neither, so there is no cycle. */
#pragma once

#include "blob/name_order.h"
#include "module/module.h"
#include "types/used_tensor.h"
#include "vm/vm.h"

/* The fields of a row of the function table that its struct vm_function lacks. */
struct vm_row {
  struct span name;    /* first, for name_order_make */
  struct span *params; /* code.functions[i].num_params of them */
  size_t at;           /* its place in the payload */
};

struct vm_executable {
  dso_module module;
  struct vm_code code;
  struct vm_row *rows; /* by index, as code.functions */
  struct name_order order;
  dso_any *constants;
  used_tensor *weights;       /* of the constants that are tensors */
  struct vm *_Atomic machine; /* on the CPU; made by the first look-up */
};

/* Read the payload into an empty executable. Returns 0, or -1 with the error raised (vm_payload.c).
 */
int vm_executable_read(struct vm_executable *self, struct reader *reader);

/* Read its constants, with the tags of the newest version or of an older one. Returns 0, or -1 with the
 * error raised (vm_constants.c). */
int vm_constants_read(struct vm_executable *self, struct reader *reader, int is_newest);

/* The row of a function that can be called, or NO_NAME. */
size_t vm_executable_row(const struct vm_executable *self, const char *name, size_t nbytes);

/* Call `visit` for each of these functions, as dso_module_functions. */
int vm_executable_visit(const struct vm_executable *self, dso_visit_function visit, void *context);

/* A new machine, bound to functions of the imports, global functions and built-in ones. NULL with
 * an error raised (vm_link.c). */
struct vm *vm_link(struct vm_executable *self, const DLDevice *devices, size_t num_devices);

/* For each constant that names a weight the tensor of the imports, or None; NULL without any. Returns
 * 0, or -1 with KeyError or another error raised (vm_weights.c). */
int vm_weights_find(struct vm_executable *self, dso_any **weights);
void vm_weights_free(const struct vm_executable *self, dso_any **weights);

/* A function of the model, or a call that was saved with its arguments; a quiet one drops its
 * result. */
enum vm_function_kind { VM_OF_MODEL, VM_SAVED, VM_SAVED_QUIET };

/* A Function that calls `closure` and retains `module`. It takes over the reference to `closure`,
 * which may be NULL after an error. NULL with an error raised (vm_function.c). */
dso_function *vm_function_new(dso_module *module, dso_object *closure, enum vm_function_kind kind);

/* A module with the functions of TVM's protocol. NULL with MemoryError raised (virtual_machine.c).
 */
dso_module *virtual_machine_new(struct vm_executable *executable);
