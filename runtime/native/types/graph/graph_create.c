/* How a factory makes executors: its graph, and the parameters that its tree has. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "types/graph/graph_factory.h"

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

/* Find the parameter of an input, owned: 1, 0 if there is none, or -1 raised. */
static int find_param(struct factory *self, struct span name, dso_tensor_object **array) {
  struct wanted wanted = {.name = name.data};
  int status = factory_array(self, name, array);
  if (status > 0) object_retain(&(*array)->object);
  if (status != 0 || memchr(name.data, '\0', name.size) != NULL) return status;
  status = module_visit(&self->module, find_weight, &wanted);
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

static int read_metadata(dso_module *factory, struct graph *graph) {
  dso_function *function;
  int status = module_find(factory, AOT_METADATA, &function);
  if (status <= 0) return status == 0 ? module_not_found(factory, AOT_METADATA) : -1;
  status = aot_graph_read(graph, function);
  dso_function_release(function);
  return status;
}

static int read_graph(struct factory *self, struct graph *graph) {
  if (self->graph_json.data == NULL) return read_metadata(&self->module, graph);
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
  struct graph graph = {0};
  struct params params = {0};
  struct graph_executor *executor = NULL;
  if (read_graph(self, &graph) != 0) return -1;
  int status = find_params(self, &graph, &params);
  struct operator_finder finder = graph_operators(&self->module);
  if (status == 0)
    executor = graph_executor_new(&graph, &finder, self->module.owner, devices, num_devices);
  else graph_free(&graph);
  status = executor != NULL ? set_params(executor, &params) : -1;
  params_free(&params);
  if (status == 0) *result = dso_object_value(&executor->module.object);
  else if (executor != NULL) module_release(&executor->module);
  return status;
}

enum { MOST_DEVICES = 64 };

int factory_create(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
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
