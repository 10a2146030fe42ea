/* GraphExecutorFactory and AotExecutorFactory as modules.
 *
 * GraphExecutorFactory   string graph_json, then as AotExecutorFactory; alias GraphRuntimeFactory
 * AotExecutorFactory     u64 n, vector<string> names, n x NDArray, string module_name */
#include "module/graph_factory.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "blob/key.h"
#include "module/values.h"

struct factory {
  dso_module module;
  struct span graph_json; /* data is NULL for AOT */
  char *name;             /* of the model */
  char *where;            /* in messages */
  struct named_arrays *arrays;
};

/* Bare factories share the arrays' owner through the module they were made of. */
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
  if (self == NULL) {
    named_arrays_clear(&arrays);
    return -1;
  }
  *self->arrays = arrays;
  *module = &self->module;
  return 0;
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

/* ---- Making executors */

/* The weights of the imports, by name. */
struct wanted {
  const char *name;
  dso_module *holder;
  DLTensor tensor;
};

static int find_weight(void *context, dso_module *module) {
  struct wanted *wanted = context;
  if (module->type->weight == NULL) return 0;
  int status = module->type->weight(module, wanted->name, &wanted->tensor);
  if (status > 0) wanted->holder = module;
  return status;
}

/* A view of a weight that keeps its module. */
static dso_tensor_object *view_weight(const struct wanted *wanted) {
  const DLTensor *tensor = &wanted->tensor;
  module_retain(wanted->holder);
  dso_tensor_object *view =
      tensor_object_view(tensor->dtype, tensor->ndim, tensor->shape, &wanted->holder->object);
  if (view == NULL) return NULL;
  view->tensor.data = tensor->data;
  view->tensor.device = tensor->device;
  view->tensor.byte_offset = tensor->byte_offset;
  tensor_object_mark(&view->object, TENSOR_READ_ONLY);
  return view;
}

static dso_tensor_object *own_array(const struct factory *self, struct span name) {
  for (size_t i = 0; i < self->arrays->count; i++)
    if (self->arrays->items[i].name_size == name.size &&
        memcmp(self->arrays->items[i].name, name.data, name.size) == 0)
      return self->arrays->items[i].tensor;
  return NULL;
}

/* Find the parameter of an input, owned: 1, 0 if there is none, or -1 raised. */
static int find_param(struct factory *self, struct span name, dso_tensor_object **array) {
  *array = own_array(self, name);
  if (*array != NULL) {
    object_retain(&(*array)->object);
    return ndarray_use(array) == 0 ? 1 : (object_release(&(*array)->object), -1);
  }
  struct wanted wanted = {.name = name.data};
  if (memchr(name.data, '\0', name.size) != NULL) return 0;
  int status = module_visit(&self->module, find_weight, &wanted);
  if (status <= 0) return status;
  *array = view_weight(&wanted);
  return *array != NULL ? 1 : -1;
}

struct params {
  size_t count;
  dso_tensor_object **arrays; /* by input; NULL: none */
};

static void params_free(struct params *params) {
  for (size_t i = 0; params->arrays != NULL && i < params->count; i++)
    if (params->arrays[i] != NULL) object_release(&params->arrays[i]->object);
  free((void *)params->arrays);
}

static int find_params(struct factory *self, const struct graph *graph, struct params *params) {
  params->count = graph->num_inputs;
  params->arrays = heap_new_zeroed(graph->num_inputs + 1, sizeof *params->arrays);
  if (params->arrays == NULL) return raised_format("OutOfMemoryError", "no memory for a graph");
  int status = 0;
  for (size_t i = 0; i < params->count && status >= 0; i++)
    status = find_param(self, graph_input_node(graph, i)->name, &params->arrays[i]);
  for (size_t i = 0; i < params->count && status >= 0; i++)
    if (params->arrays[i] != NULL)
      status = graph_check_param(graph, self->where, i, &params->arrays[i]->tensor);
  return status < 0 ? -1 : 0;
}

static int read_graph(struct factory *self, struct graph *graph) {
  if (self->graph_json.data == NULL) return aot_graph_read(graph, &self->module);
  if (graph_parse(graph, self->graph_json, self->where) != 0) return -1;
  if (graph_check_params(graph, self->where, self->arrays) == 0) return 0;
  graph_free(graph);
  return -1;
}

static int set_params(struct graph_executor *executor, const struct params *params) {
  for (size_t i = 0; i < params->count; i++)
    if (params->arrays[i] != NULL && graph_set_array(executor, i, params->arrays[i]) != 0)
      return -1;
  return 0;
}

static int make(struct factory *self, const DLDevice *devices, int num_devices, dso_any *result) {
  struct graph graph;
  struct params params = {0};
  struct graph_executor *executor = NULL;
  if (read_graph(self, &graph) != 0) return -1;
  int status = find_params(self, &graph, &params);
  if (status == 0) executor = graph_executor_new(&graph, &self->module, devices, num_devices);
  else graph_free(&graph);
  status = executor != NULL ? set_params(executor, &params) : -1;
  params_free(&params);
  if (status == 0) *result = dso_object_value(&executor->module.object);
  else if (executor != NULL) module_release(&executor->module);
  return status;
}

enum { MOST_DEVICES = 64 };

static int create(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct factory *self = handle;
  DLDevice devices[MOST_DEVICES];
  if (num_args > MOST_DEVICES)
    return raised_format("ValueError", "%s: expected at most %d devices, found %d", self->name,
                         MOST_DEVICES, (int)num_args);
  for (int32_t i = 0; i < num_args; i++) {
    if (args[i].type_index != DSO_DEVICE)
      return raised_format("TypeError", "%s: argument %d, expected a device", self->name,
                           (int)i + 1);
    devices[i] = args[i].v_device;
    if (device_check_allowed(&self->module, devices[i]) != 0) return -1;
  }
  return make(self, devices, (int)num_args, result);
}

/* ---- The other functions */

static int debug_create(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct factory *self = handle;
  struct span name;
  if (value_count("debug_create", num_args, 1, INT32_MAX) != 0 ||
      value_text("debug_create", args, 0, &name) != 0)
    return -1;
  if (key_is(name, self->name)) return create(handle, args + 1, num_args - 1, result);
  struct text text = {0};
  text_format(&text, "no model ");
  text_repr(&text, name.data, name.size);
  text_format(&text, ", only ");
  text_repr(&text, self->name, strlen(self->name));
  raised_set("KeyError", text_of(&text));
  text_free(&text);
  return -1;
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

/* Without a Map in C, a caller gets the tensors by dso_module_weights; code gets them by name. */
static int get_graph_params(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct factory *self = handle;
  return graph_params_array(self->arrays, args, num_args, result);
}

static const struct {
  const char *name;
  dso_safe_call call;
} functions[] = {
    {"get_graph_params", get_graph_params},
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
  dso_safe_call call = strcmp(name, self->name) == 0 ? create : NULL;
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
  int status = 0;
  for (size_t i = 0; i < self->arrays->count && status == 0; i++)
    status = visit(context, self->arrays->items[i].name, &self->arrays->items[i].tensor->tensor);
  return status;
}

static int weight(dso_module *module, const char *name, DLTensor *tensor) {
  const dso_tensor_object *array =
      own_array((const struct factory *)module, (struct span){name, strlen(name)});
  if (array == NULL) return 0;
  *tensor = array->tensor;
  return 1;
}

static const char *entry(dso_module *module) { return ((const struct factory *)module)->name; }

static void end(dso_module *module) {
  struct factory *self = (struct factory *)module;
  if (self->arrays != NULL) named_arrays_clear(self->arrays);
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
