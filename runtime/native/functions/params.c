/* vm.builtin.param_*_from_cache*: the parameters of a model, of the tensor cache. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "abi/raised.h"
#include "functions/global_functions.h"
#include "functions/tensor_cache.h"
#include "module/module.h"
#include "vm/object.h"

enum { MOST_PARAMS = 1 << 20, NAME_SIZE = 512 };

static int refuse_name(const char *function, struct span name) {
  return raised_format("ValueError",
                       "%s: no tensor '%.*s' in the cache; use vm.builtin.tensor_cache.update",
                       function, (int)(name.size < 200 ? name.size : 200), name.data);
}

static int put(const char *function, dso_array_object *array, int64_t at, struct span name) {
  dso_object *tensor = tensor_cache_find(name);
  if (tensor == NULL) return refuse_name(function, name);
  array->items[at] = any_of_object(tensor);
  return 0;
}

/* The array, or NULL after an error. */
static dso_array_object *keep(dso_array_object *array, int status) {
  if (status == 0 || array == NULL) return array;
  object_release(&array->object);
  return NULL;
}

/* ---- By prefix: <prefix>_0, <prefix>_1, ... */

static struct span numbered(char name[NAME_SIZE], struct span prefix, int64_t number) {
  int size = snprintf(name, NAME_SIZE, "%.*s_%" PRId64, (int)prefix.size, prefix.data, number);
  return (struct span){name, (size_t)size};
}

static int64_t count_numbered(struct span prefix) {
  char name[NAME_SIZE];
  int64_t count = 0;
  for (; count < MOST_PARAMS; count++) {
    dso_object *tensor = tensor_cache_find(numbered(name, prefix, count));
    if (tensor == NULL) break;
    object_release(tensor);
  }
  return count;
}

/* Prefix and number; -1 takes all that follow each other. */
static dso_array_object *by_prefix(const char *function, const dso_any *args, int32_t num_args) {
  char name[NAME_SIZE];
  struct span prefix;
  int64_t count;
  if (value_count(function, num_args, 2, 2) != 0 || value_text(function, args, 0, &prefix) != 0 ||
      value_int(function, args, 1, &count) != 0)
    return NULL;
  if (prefix.size > NAME_SIZE - 32 || count < -1 || count > MOST_PARAMS)
    return raised_null("ValueError",
                       "%s: a prefix of %zu bytes and %" PRId64
                       " parameters, expected at most %d bytes and -1 to %d parameters",
                       function, prefix.size, count, NAME_SIZE - 32, MOST_PARAMS);
  if (count == -1) count = count_numbered(prefix);
  for (int64_t i = 0; i < count;
       i++) { /* before memory is allocated for as many as the code says */
    dso_object *tensor = tensor_cache_find(numbered(name, prefix, i));
    if (tensor == NULL) {
      (void)refuse_name(function, numbered(name, prefix, i));
      return NULL;
    }
    object_release(tensor);
  }
  dso_array_object *array = array_object_new(count);
  int status = array != NULL ? 0 : -1;
  for (int64_t i = 0; i < count && status == 0; i++)
    status = put(function, array, i, numbered(name, prefix, i));
  return keep(array, status);
}

/* ---- By names */

static dso_array_object *by_names(const char *function, const dso_any *names, int64_t count) {
  dso_array_object *array = array_object_new(count);
  int status = array != NULL ? 0 : -1;
  for (int64_t i = 0; i < count && status == 0; i++) {
    struct span name;
    status = value_text(function, names, (int32_t)i, &name);
    if (status == 0) status = put(function, array, i, name);
  }
  return keep(array, status);
}

static dso_array_object *by_name_array(const char *function, const dso_any *args,
                                       int32_t num_args) {
  if (value_count(function, num_args, 1, 1) != 0) return NULL;
  const dso_array_object *names = args[0].v_ptr;
  if (args[0].type_index == DSO_ARRAY && names->size <= MOST_PARAMS)
    return by_names(function, names->items, names->size);
  return raised_null("TypeError", "%s: argument 1, expected a tuple of str", function);
}

/* ---- As arrays */

static int give(dso_array_object *array, dso_any *result) {
  if (array == NULL) return -1;
  *result = any_of_object(array);
  return 0;
}

GLOBAL_FUNCTION(global_param_array_from_cache) {
  (void)handle;
  return give(by_prefix("vm.builtin.param_array_from_cache", args, num_args), result);
}

GLOBAL_FUNCTION(global_param_array_from_cache_by_name) {
  (void)handle;
  return give(by_name_array("vm.builtin.param_array_from_cache_by_name", args, num_args), result);
}

GLOBAL_FUNCTION(global_param_array_from_cache_by_name_unpacked) {
  static const char function[] = "vm.builtin.param_array_from_cache_by_name_unpacked";
  (void)handle;
  if (value_count(function, num_args, 0, INT32_MAX) != 0) return -1;
  return give(by_names(function, args, num_args), result);
}

/* ---- As a module, whose function get_params returns the array */

struct param_module {
  dso_module module;
  dso_array_object *params;
};

static int get_params(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct param_module *self = handle;
  (void)args, (void)num_args;
  object_retain(&self->params->object);
  return give(self->params, result);
}

static int find(dso_module *module, const char *name, dso_function **function) {
  if (strcmp(name, "get_params") != 0) return 0;
  *function = module_function_new(module, get_params, module);
  return *function != NULL ? 1 : -1;
}

static int visit_functions(dso_module *module, dso_visit_function visit, void *context) {
  (void)module;
  return visit(context, "get_params", "()");
}

static void end(dso_module *module) {
  object_release(&((struct param_module *)module)->params->object);
}

static const struct module_type param_module_type = {
    .find = find,
    .visit_functions = visit_functions,
    .end = end,
};

static int give_module(dso_array_object *params, dso_any *result) {
  static const char key[] = "param_module";
  if (params == NULL) return -1;
  struct param_module *self =
      module_new(&param_module_type, (struct span){key, sizeof key - 1}, sizeof *self, NULL);
  if (self == NULL) {
    object_release(&params->object);
    return -1;
  }
  self->params = params;
  *result = any_of_object(self);
  return 0;
}

GLOBAL_FUNCTION(global_param_module_from_cache) {
  (void)handle;
  return give_module(by_prefix("vm.builtin.param_module_from_cache", args, num_args), result);
}

GLOBAL_FUNCTION(global_param_module_from_cache_by_name) {
  (void)handle;
  return give_module(by_name_array("vm.builtin.param_module_from_cache_by_name", args, num_args),
                     result);
}
