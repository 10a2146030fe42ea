/* Functions of a machine: they retain the executable, whose weights a caller may have borrowed. */
#include "abi/raised.h"
#include "types/vm/vm_executable.h"

struct machine_function {
  dso_function function;
  dso_module *module;
  dso_object *closure; /* retains the machine */
  enum vm_function_kind kind;
};

static int call(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct machine_function *self = handle;
  dso_function *closure = (dso_function *)(void *)self->closure;
  if (self->kind != VM_OF_MODEL && num_args != 0)
    return raised_format("TypeError", "a saved call: expected 0 arguments, found %d",
                         (int)num_args);
  if (self->kind != VM_SAVED_QUIET) return closure->safe_call(closure, args, num_args, result);
  return dso_call_function(self->closure, NULL, args, num_args);
}

static void delete_function(void *object, int flags) {
  struct machine_function *self = object;
  if (flags & DSO_DELETE_STRONG) {
    object_release(self->closure);
    module_release(self->module);
  }
  object_free(self, flags);
}

dso_function *vm_function_new(dso_module *module, dso_object *closure, enum vm_function_kind kind) {
  if (closure == NULL) return NULL;
  struct machine_function *self = object_new(sizeof *self, DSO_FUNCTION, delete_function);
  if (self == NULL) {
    object_release(closure);
    return raised_null("OutOfMemoryError", "no memory for a function");
  }
  self->function.safe_call = call;
  self->module = module;
  self->closure = closure;
  self->kind = kind;
  module_retain(module);
  return &self->function;
}
