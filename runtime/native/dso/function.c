/* Functions: look-up, calls by name, functions and types of the program. */
#include <stdint.h>
#include <string.h>

#include "abi/raised.h"
#include "dso.h"
#include "dso/null.h"
#include "module/global.h"
#include "module/embedder.h"
#include "module/loaders.h"

dso_function *dso_module_function(dso_module *module, const char *name) {
  dso_function *function = NULL;
  embedder_collect();
  if (is_null(module, "dso_module_function", "a module") ||
      is_null(name, "dso_module_function", "a name"))
    return NULL;
  int status = module_find(module, name, &function);
  if (status == 0) (void)module_not_found(module, name);
  return status > 0 ? function : NULL;
}

/* A function that reports an error without raising one. */
static int check_raised(const char *name, int status, uint64_t before) {
  if (status == 0) return 0;
  if (raised_at() == before && *dso_last_error() == '\0')
    (void)raised_format("RuntimeError", "%s: returned %d without an error", name, status);
  return -1;
}

int dso_module_call(dso_module *module, const char *name, dso_any *result, const dso_any *args,
                    int32_t num_args) {
  if (result != NULL) *result = dso_none();
  if (num_args > 0 && is_null(args, "dso_module_call", "arguments")) return -1;
  dso_function *function = dso_module_function(module, name);
  if (function == NULL) return -1;
  uint64_t before = raised_at();
  int status = dso_function_call(function, result, args, num_args);
  dso_function_release(function);
  return check_raised(name, status, before);
}

int dso_module_functions(dso_module *module, dso_visit_function visit, void *context) {
  if (is_null(module, "dso_module_functions", "a module") ||
      is_null((const void *)(uintptr_t)visit, "dso_module_functions", "a function to call"))
    return -1;
  if (module->type->visit_functions == NULL) return 0;
  return module->type->visit_functions(module, visit, context);
}

/* ---- Functions of the program */

struct own_function {
  dso_function_object function;
  dso_safe_call call;
  void *handle;
  void (*end)(void *handle);
};

static void delete_own(void *object, int flags) {
  struct own_function *self = object;
  if ((flags & DSO_DELETE_STRONG) && self->end != NULL) self->end(self->handle);
  object_free(self, flags);
}

static int call_own(void *object, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct own_function *self = object;
  return self->call(self->handle, args, num_args, result);
}

dso_function *dso_function_new(dso_safe_call call, void *handle, void (*end)(void *handle)) {
  if (is_null((const void *)(uintptr_t)call, "dso_function_new", "a function to call")) return NULL;
  struct own_function *self = object_new(sizeof *self, DSO_FUNCTION, delete_own);
  if (self == NULL) return raised_null("OutOfMemoryError", "no memory for a function");
  self->function.safe_call = call_own;
  self->call = call;
  self->handle = handle;
  self->end = end;
  return &self->function;
}

int dso_register_function(const char *name, dso_function *function) {
  if (is_null(name, "dso_register_function", "a name") ||
      is_null(function, "dso_register_function", "a function"))
    return -1;
  return global_register(name, function);
}

int dso_register_loader(const dso_type *type) {
  if (is_null(type, "dso_register_loader", "a type")) return -1;
  if (type->size < sizeof *type || type->type_key == NULL || type->load == NULL)
    return raised_format("ValueError", "dso_type: expected size, type_key and load");
  return loaders_register(type);
}
