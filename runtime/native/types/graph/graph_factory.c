/* GraphExecutorFactory and AotExecutorFactory as modules.
 *
 * GraphExecutorFactory   string graph_json, then as AotExecutorFactory; alias GraphRuntimeFactory
 * AotExecutorFactory     u64 n, vector<string> names, n x NDArray, string module_name */
#include "types/graph/graph_factory.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "blob/key.h"
#include "types/values.h"
#include "types/families.h"

static const struct module_type factory_type;

static const char *key_of(const struct factory *self) {
  return self->graph_json.data != NULL ? "GraphExecutorFactory" : "AotExecutorFactory";
}

static struct factory *factory_new(struct span graph_json, const char *name, dso_object *owner) {
  struct factory named = {.graph_json = graph_json};
  const char *key = key_of(&named);
  struct factory *self =
      module_new(&factory_type, (struct span){key, strlen(key)}, sizeof *self, owner);
  if (self == NULL) return NULL;
  struct text where = {0};
  self->graph_json = graph_json;
  self->name = heap_copy_text(name);
  self->arrays = heap_new_zeroed(1, sizeof *self->arrays);
  text_format(&where, "%s ", key);
  text_repr(&where, name, strlen(name));
  self->where = heap_copy_text(text_of(&where));
  int is_whole = self->name != NULL && self->where != NULL && self->arrays != NULL;
  text_free(&where);
  if (is_whole) return self;
  raised_set("OutOfMemoryError", "no memory for a module");
  module_release(&self->module);
  return NULL;
}

/* ---- Reading */

static int take_arrays(struct factory *self, struct named_arrays arrays) {
  *self->arrays = arrays;
  self->used = heap_new_zeroed(arrays.count + 1, sizeof *self->used);
  return self->used != NULL ? 0 : raised_format("OutOfMemoryError", "no memory for a module");
}

static int read_rest(struct reader *reader, struct span graph_json, dso_module **module) {
  struct named_arrays arrays = {0};
  struct span text = {0};
  uint64_t count;
  size_t start = reader->offset;
  if (reader_u64(reader, &count) != 0) return -1;
  if (named_arrays_read_counted(reader, count, start, &arrays) != 0) return -1;
  char *name = reader_string(reader, &text) == 0 ? span_copy(text) : NULL;
  struct factory *self = name != NULL ? factory_new(graph_json, name, reader->owner) : NULL;
  free(name);
  if (self != NULL && take_arrays(self, arrays) == 0) {
    *module = &self->module;
    return 0;
  }
  if (self != NULL) module_release(&self->module);
  else named_arrays_clear(&arrays);
  return -1;
}

int load_graph_factory(struct reader *reader, struct span type_key, dso_module **module) {
  struct span graph_json;
  (void)type_key; /* GraphRuntimeFactory is an alias */
  return reader_string(reader, &graph_json) == 0 ? read_rest(reader, graph_json, module) : -1;
}

int load_aot_factory(struct reader *reader, struct span type_key, dso_module **module) {
  (void)type_key;
  return read_rest(reader, (struct span){NULL, 0}, module);
}

/* ---- Functions */

int factory_array(const struct factory *self, struct span name, dso_tensor_object **array) {
  for (size_t i = 0; i < self->arrays->count; i++) {
    const struct named_array *item = &self->arrays->items[i];
    if (span_compare(item->name, name) != 0) continue;
    *array = used_tensor_get(&self->used[i], item->tensor);
    return *array != NULL ? 1 : -1;
  }
  return 0;
}

static int debug_create(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct factory *self = handle;
  struct span name;
  if (value_count("debug_create", num_args, 1, INT32_MAX) != 0 ||
      value_text("debug_create", args, 0, &name) != 0)
    return -1;
  if (key_is(name, self->name)) return factory_create(handle, args + 1, num_args - 1, result);
  struct text text = {0};
  text_format(&text, "no model ");
  text_repr(&text, name.data, name.size);
  text_format(&text, ", only ");
  text_repr(&text, self->name, strlen(self->name));
  return text_raise(&text, "KeyError");
}

static int get_graph_json(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct factory *self = handle;
  (void)args;
  if (value_count("get_graph_json", num_args, 0, 0) != 0) return -1;
  if (object_make_string(result, 1, self->graph_json.data, self->graph_json.size) == 0) return 0;
  return raised_format("OutOfMemoryError", "no memory for a result");
}

static int remove_params(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct factory *self = handle;
  dso_module *const *imports;
  (void)args;
  if (value_count("remove_params", num_args, 0, 0) != 0) return -1;
  struct factory *bare = factory_new(self->graph_json, self->name, self->module.owner);
  if (bare == NULL) return -1;
  size_t count = module_imports(&self->module, &imports);
  for (size_t i = 0; i < count; i++)
    if (module_append_import(&bare->module, imports[i]) != 0) {
      module_release(&bare->module);
      return -1;
    }
  *result = dso_object_value(&bare->module.object);
  return 0;
}

static const struct {
  const char *name;
  dso_safe_call call;
} functions[] = {
    {"get_graph_params", graph_params_array},
    {"remove_params", remove_params},
    {"get_graph_json", get_graph_json},
    {"debug_create", debug_create},
};

enum { NUM_AOT = 2, NUM_ALL = 4 };

static size_t num_functions(const struct factory *self) {
  return self->graph_json.data != NULL ? NUM_ALL : NUM_AOT;
}

static int find(dso_module *module, const char *name, dso_function **function) {
  const struct factory *self = (const struct factory *)module;
  dso_safe_call call = strcmp(name, self->name) == 0 ? factory_create : NULL;
  for (size_t i = 0; call == NULL && i < num_functions(self); i++)
    if (strcmp(name, functions[i].name) == 0) call = functions[i].call;
  if (call == NULL) return 0;
  *function = module_function_new(module, call, module);
  return *function != NULL ? 1 : -1;
}

static int visit_functions(dso_module *module, dso_visit_function visit, void *context) {
  const struct factory *self = (const struct factory *)module;
  int status = visit(context, self->name, NULL);
  for (size_t i = 0; i < num_functions(self) && status == 0; i++)
    status = visit(context, functions[i].name, NULL);
  return status;
}

static int visit_weights(dso_module *module, dso_visit_weight visit, void *context) {
  const struct factory *self = (const struct factory *)module;
  return used_tensors_visit(self->arrays, self->used, visit, context);
}

static int weight(dso_module *module, const char *name, DLTensor *tensor) {
  dso_tensor_object *array;
  int status =
      factory_array((const struct factory *)module, (struct span){name, strlen(name)}, &array);
  if (status > 0) *tensor = array->tensor;
  return status;
}

static const char *entry(dso_module *module) { return ((const struct factory *)module)->name; }

static void end(dso_module *module) {
  struct factory *self = (struct factory *)module;
  for (size_t i = 0; self->used != NULL && i < self->arrays->count; i++)
    used_tensor_clear(&self->used[i]);
  if (self->arrays != NULL) named_arrays_clear(self->arrays);
  free((void *)self->used);
  free(self->arrays);
  free(self->name);
  free(self->where);
}

static const struct module_type factory_type = {
    .find = find,
    .visit_functions = visit_functions,
    .visit_weights = visit_weights,
    .weight = weight,
    .entry = entry,
    .end = end,
};
