/* The functions of a GraphExecutor, with the names of TVM's GraphModule: running, outputs. */
#include <inttypes.h>
#include <string.h>

#include "abi/raised.h"
#include "device/device_api.h"
#include "types/graph/graph_functions.h"
#include "types/values.h"
#include "vm/object.h"

/* ---- Names and indices */

static int output_of(const struct graph_executor *self, const char *function, const dso_any *args,
                     size_t *entry) {
  int64_t index;
  size_t output;
  if (value_int(function, args, 0, &index) != 0) return -1;
  if (graph_check_index("output", index, self->graph.num_outputs, &output) != 0) return -1;
  *entry = self->graph.outputs[output];
  return 0;
}

/* ---- Running, and outputs */

static int check_set(const struct graph_executor *self) {
  struct text text = {0};
  size_t count = 0;
  for (size_t i = 0; i < self->graph.num_inputs; i++) {
    struct span name = graph_input_node(&self->graph, i)->name;
    if (self->is_set[i] || ++count > 8) continue;
    if (count > 1) text_add(&text, ", ", 2);
    text_shown(&text, name.data, name.size);
  }
  if (count == 0) return 0;
  if (count > 8) text_format(&text, " and %zu more", count - 8);
  (void)raised_format("PackerError", "inputs of the graph that are not set: %s; use set_input",
                      text_of(&text));
  text_free(&text);
  return -1;
}

static int run(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct graph_executor *self = handle;
  (void)args, (void)result;
  if (value_count("run", num_args, 0, 0) != 0 || check_set(self) != 0) return -1;
  return binding_run(&self->binding, 0, self->binding.num_calls);
}

static int get_num_outputs(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct graph_executor *self = handle;
  (void)args;
  if (value_count("get_num_outputs", num_args, 0, 0) != 0) return -1;
  *result = dso_int((int64_t)self->graph.num_outputs);
  return 0;
}

/* The first output that a node of this name computes. */
static int get_output_index(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct graph *graph = &((struct graph_executor *)handle)->graph;
  struct span name;
  if (value_count("get_output_index", num_args, 1, 1) != 0 ||
      value_text("get_output_index", args, 0, &name) != 0)
    return -1;
  size_t found = graph->num_outputs;
  for (size_t i = 0; i < graph->num_nodes; i++) {
    const struct graph_node *node = &graph->nodes[i];
    if (node->name.size != name.size || memcmp(node->name.data, name.data, name.size) != 0)
      continue;
    for (size_t output = 0; output < found; output++)
      if (graph->outputs[output] - node->first_output < node->num_outputs) found = output;
  }
  *result = dso_int(found < graph->num_outputs ? (int64_t)found : -1);
  return 0;
}

static int refuse_read_only(const DLTensor *tensor) {
  struct text text = {0};
  DLDevice device = tensor->device;
  const char *kind = device_kind_name(device.device_type);
  text_format(&text, "copy_from: expected a writable tensor, found <Tensor ");
  graph_add_type(&text, tensor->dtype, tensor->ndim, tensor->shape);
  text_format(&text, " on %s", kind != NULL ? kind : "device");
  if (device.device_type != DLPACK_CPU) text_format(&text, ":%d", device.device_id);
  text_format(&text, ">, which is read-only");
  return text_raise(&text, "ValueError");
}

/* Copy an array to the caller's, which is also the result if it is a Tensor object. */
static int copy_out(struct text *what, const struct graph_entry *entry,
                    const dso_tensor_object *found, const dso_any *out, dso_any *result) {
  dso_tensor_object *array = graph_matching(what, entry, out);
  if (array == NULL) return -1;
  int status = tensor_value_is_readonly(out) ? refuse_read_only(&array->tensor)
                                             : tensor_copy(&array->tensor, &found->tensor);
  object_release(&array->object);
  if (status == 0 && out->type_index == DSO_TENSOR) (void)graph_give(out->v_ptr, result);
  return status;
}

static int get_output(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct graph_executor *self = handle;
  size_t entry;
  if (value_count("get_output", num_args, 1, 2) != 0) return -1;
  if (output_of(self, "get_output", args, &entry) != 0) return -1;
  if (num_args == 1) return graph_give(self->binding.arrays[entry], result);
  struct text what = {0};
  text_format(&what, "get_output %" PRId64 ": out", args[0].v_int64);
  return copy_out(&what, &self->graph.entries[entry], self->binding.arrays[entry], &args[1],
                  result);
}

static int is_input_entry(const struct graph *graph, size_t entry) {
  for (size_t i = 0; i < graph->num_inputs; i++)
    if (graph_input_entry(graph, i) == entry) return 1;
  return 0;
}

static int bind_output(struct graph_executor *self, int64_t index, size_t entry,
                       dso_tensor_object *array) {
  if (binding_is_view(&self->binding, entry) || is_input_entry(&self->graph, entry))
    return raised_format(
        "ValueError", "set_output_zero_copy %" PRId64 ": the output shares another array's memory",
        index);
  int is_readonly = (tensor_object_flags(&array->object) & TENSOR_READ_ONLY) != 0;
  int status = is_readonly ? 0 : binding_bind(&self->binding, entry, array);
  if (status != 0) return status < 0 ? -1 : 0;
  return raised_format("ValueError", "set_output_zero_copy %" PRId64 ": expected memory %s", index,
                       GRAPH_FITNESS);
}

static int set_output_zero_copy(void *handle, const dso_any *args, int32_t num_args,
                                dso_any *result) {
  struct graph_executor *self = handle;
  struct text what = {0};
  size_t entry;
  (void)result;
  if (value_count("set_output_zero_copy", num_args, 2, 2) != 0) return -1;
  if (output_of(self, "set_output_zero_copy", args, &entry) != 0) return -1;
  text_format(&what, "set_output_zero_copy %" PRId64, args[0].v_int64);
  dso_tensor_object *array = graph_matching(&what, &self->graph.entries[entry], &args[1]);
  if (array == NULL) return -1;
  int status = bind_output(self, args[0].v_int64, entry, array);
  object_release(&array->object);
  return status;
}

/* ---- Debugging */

static int node_of(const struct graph_executor *self, const dso_any *args, size_t *node) {
  struct span name;
  if (graph_is_integer(&args[0]))
    return graph_check_index("node", args[0].v_int64, self->graph.num_nodes, node);
  if (value_text("debug_get_output", args, 0, &name) != 0) return -1;
  *node = graph_find_node(&self->graph, name);
  return *node != GRAPH_NO_INDEX ? 0 : graph_no_name(self, "node", name, 1);
}

static struct text what_of_node(const dso_any *key) {
  struct text text = {0};
  struct span name;
  text_format(&text, "debug_get_output ");
  if (graph_is_integer(key)) text_format(&text, "%" PRId64, key->v_int64);
  else if (value_text("debug_get_output", key, 0, &name) == 0)
    text_repr(&text, name.data, name.size);
  text_format(&text, ": out");
  return text;
}

/* Run up to a node, and copy its first output. */
static int debug_get_output(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct graph_executor *self = handle;
  size_t index;
  if (value_count("debug_get_output", num_args, 1, 2) != 0) return -1;
  if (node_of(self, args, &index) != 0) return -1;
  const struct graph_node *node = &self->graph.nodes[index];
  if (node->num_outputs == 0) return raised_format("IndexError", "range object index out of range");
  if (binding_run(&self->binding, 0, self->binding.stops[index]) != 0) return -1;
  const struct graph_entry *entry = &self->graph.entries[node->first_output];
  const dso_tensor_object *found = self->binding.arrays[node->first_output];
  if (num_args == 2) {
    struct text what = what_of_node(&args[0]);
    return copy_out(&what, entry, found, &args[1], result);
  }
  DLDevice cpu = {.device_type = DLPACK_CPU, .device_id = 0};
  dso_object *copy = tensor_object_new(cpu, entry->dtype, entry->ndim, entry->shape);
  if (copy == NULL) return -1;
  int status = tensor_copy(&((dso_tensor_object *)(void *)copy)->tensor, &found->tensor);
  if (status == 0) *result = any_of_object(copy);
  else object_release(copy);
  return status;
}

/* ---- All */

const struct graph_function graph_functions[] = {
    {"set_input", graph_set_input},
    {"set_input_zero_copy", graph_set_input_zero_copy},
    {"set_output_zero_copy", set_output_zero_copy},
    {"run", run},
    {"get_output", get_output},
    {"get_input", graph_get_input},
    {"get_num_outputs", get_num_outputs},
    {"get_num_inputs", graph_get_num_inputs},
    {"get_input_index", graph_get_input_index},
    {"get_output_index", get_output_index},
    {"get_input_info", graph_get_input_info},
    {"load_params", graph_load_params},
    {"share_params", graph_share_params},
    {"debug_get_output", debug_get_output},
    {NULL, NULL},
};

dso_safe_call graph_function_find(const char *name) {
  for (const struct graph_function *row = graph_functions; row->name != NULL; row++)
    if (strcmp(row->name, name) == 0) return row->call;
  return NULL;
}
