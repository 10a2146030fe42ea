/* const_loader as a module. */
#define _POSIX_C_SOURCE 200809L /* PTHREAD_MUTEX_RECURSIVE */
#include "types/const/const_loader.h"
#include "types/families.h"

#include <string.h>

#include "abi/raised.h"
#include "abi/recursive_lock.h"
#include "vm/object.h"

/* TVM's names for the function that returns all constants: until 2025, and since. */
static const char *const getters[] = {"get_const_var_ndarray", "get_const_var_tensor"};
enum { NUM_GETTERS = sizeof getters / sizeof *getters };

/* Set a name and its tensor. */
static int set_pair(struct const_loader *self, size_t place, dso_any *pair) {
  const struct named_array *item = &self->arrays.items[place];
  dso_tensor_object *tensor = const_loader_use(self, place);
  if (tensor == NULL) return -1;
  if (object_make_string(&pair[0], 1, item->name.data, item->name.size) != 0)
    return raised_format("OutOfMemoryError", "%s: no memory for a name", getters[0]);
  object_retain(&tensor->object);
  pair[1] = any_of_object(tensor);
  return 0;
}

/* All constants, as an Array: name, tensor, name, tensor, ... */
static int get_constants(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct const_loader *self = handle;
  int status = 0;
  (void)args;
  if (num_args != 0)
    return raised_format("TypeError", "%s: expected 0 arguments, found %d", getters[0],
                         (int)num_args);
  dso_array_object *array = array_object_new(2 * (int64_t)self->arrays.count);
  if (array == NULL) return -1;
  for (size_t i = 0; i < self->arrays.count && status == 0; i++)
    status = set_pair(self, i, &array->items[2 * i]);
  if (status == 0) *result = any_of_object(array);
  else object_release(&array->object);
  return status;
}

static int find(dso_module *module, const char *name, dso_function **function) {
  struct const_loader *self = (struct const_loader *)module;
  for (int i = 0; i < NUM_GETTERS; i++) {
    if (strcmp(name, getters[i]) != 0) continue;
    *function = module_function_new(module, get_constants, self);
    return *function != NULL ? 1 : -1;
  }
  return const_loader_find(self, name, function);
}

static int visit_functions(dso_module *module, dso_visit_function visit, void *context) {
  int status = 0;
  (void)module;
  for (int i = 0; i < NUM_GETTERS && status == 0; i++) status = visit(context, getters[i], NULL);
  return status;
}

/* ---- Weights */

static int visit_weights(dso_module *module, dso_visit_weight visit, void *context) {
  struct const_loader *self = (struct const_loader *)module;
  return used_tensors_visit(&self->arrays, self->used, visit, context);
}

static int weight(dso_module *module, const char *name, DLTensor *tensor) {
  struct const_loader *self = (struct const_loader *)module;
  size_t place = const_loader_place(self, name, strlen(name));
  if (place == NO_NAME) return 0;
  const dso_tensor_object *found = const_loader_use(self, place);
  if (found == NULL) return -1;
  *tensor = found->tensor;
  return 1;
}

/* ---- The module */

static void end(dso_module *module) {
  struct const_loader *self = (struct const_loader *)module;
  const_payload_clear(self);
  pthread_mutex_destroy(&self->lock);
}

const struct module_type const_loader_type = {
    .find = find,
    .visit_functions = visit_functions,
    .visit_weights = visit_weights,
    .weight = weight,
    .end = end,
};

int load_const_loader(struct reader *reader, struct span type_key, dso_module **module) {
  static const char key[] = "const_loader";
  (void)type_key; /* "metadata" is an alias */
  struct const_loader *self = module_new(&const_loader_type, (struct span){key, sizeof key - 1},
                                         sizeof *self, reader->owner);
  if (self == NULL) return -1;
  recursive_lock_init(&self->lock);
  return module_give(&self->module, const_payload_read(self, reader), module);
}
