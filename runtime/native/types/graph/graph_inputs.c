/* The functions of a GraphExecutor that are about its inputs. */
#include <inttypes.h>
#include <string.h>

#include "abi/dtype_name.h"
#include "abi/raised.h"
#include "types/graph/graph_functions.h"
#include "module/names.h"
#include "types/values.h"
#include "vm/object.h"

/* ---- Names and indices */

int graph_no_name(const struct graph_executor *self, const char *what, struct span name,
                  int is_node) {
  const struct graph *graph = &self->graph;
  struct names names = {0};
  struct text text = {0};
  size_t count = is_node ? graph->num_nodes : graph->num_inputs;
  text_format(&text, "no %s ", what);
  text_repr(&text, name.data, name.size);
  for (size_t i = 0; i < count; i++) {
    const struct graph_node *node = is_node ? &graph->nodes[i] : graph_input_node(graph, i);
    text_check(&text, names_add(&names, node->name.data));
  }
  names_add_near(&text, &names, NULL, name.data);
  names_clear(&names);
  return text_raise(&text, "KeyError");
}

int graph_check_index(const char *what, int64_t index, size_t count, size_t *checked) {
  *checked = (size_t)index;
  if (index >= 0 && (uint64_t)index < count) return 0;
  return raised_format("IndexError", "%s %" PRId64 ", expected 0 to %" PRId64, what, index,
                       (int64_t)count - 1);
}

/* The input that a value names, by name or index. Returns 0, or -1 with KeyError, IndexError or
 * TypeError raised. */
static int input_of(const struct graph_executor *self, const char *function, const dso_any *args,
                    int32_t index, size_t *input) {
  struct span name;
  if (graph_is_integer(&args[index]))
    return graph_check_index("input", args[index].v_int64, self->graph.num_inputs, input);
  if (value_text(function, args, index, &name) != 0) return -1;
  *input = graph_find_input(&self->graph, name);
  return *input != GRAPH_NO_INDEX ? 0 : graph_no_name(self, "input", name, 0);
}

/* ---- Inputs */

static struct text what_of_input(const struct graph_executor *self, const char *function,
                                 size_t input) {
  struct span name = graph_input_node(&self->graph, input)->name;
  struct text text = {0};
  text_format(&text, "%s ", function);
  text_repr(&text, name.data, name.size);
  return text;
}

/* The input and the array of set_input and set_input_zero_copy. */
static dso_tensor_object *take_input(const struct graph_executor *self, const char *function,
                                     const dso_any *args, int32_t num_args, size_t *input) {
  if (value_count(function, num_args, 2, 2) != 0) return NULL;
  if (input_of(self, function, args, 0, input) != 0) return NULL;
  struct text what = what_of_input(self, function, *input);
  return graph_matching(&what, &self->graph.entries[graph_input_entry(&self->graph, *input)],
                        &args[1]);
}

int graph_set_input(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct graph_executor *self = handle;
  size_t input;
  (void)result;
  dso_tensor_object *array = take_input(self, "set_input", args, num_args, &input);
  if (array == NULL) return -1;
  int status = binding_copy(&self->binding, graph_input_entry(&self->graph, input), &array->tensor);
  object_release(&array->object);
  if (status == 0) self->is_set[input] = 1;
  return status;
}

int graph_set_input_zero_copy(void *handle, const dso_any *args, int32_t num_args,
                              dso_any *result) {
  struct graph_executor *self = handle;
  static const char function[] = "set_input_zero_copy";
  size_t input;
  (void)result;
  dso_tensor_object *array = take_input(self, function, args, num_args, &input);
  if (array == NULL) return -1;
  int status = binding_bind(&self->binding, graph_input_entry(&self->graph, input), array);
  object_release(&array->object);
  if (status < 0) return -1;
  if (status == 0) {
    struct text what = what_of_input(self, function, input);
    (void)raised_format("ValueError", "%s: expected memory %s; set_input copies", text_of(&what),
                        GRAPH_FITNESS);
    text_free(&what);
    return -1;
  }
  self->is_set[input] = 1;
  return 0;
}

int graph_give(dso_tensor_object *array, dso_any *result) {
  object_retain(&array->object);
  *result = any_of_object(array);
  return 0;
}

int graph_get_input(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct graph_executor *self = handle;
  size_t input;
  if (value_count("get_input", num_args, 1, 1) != 0) return -1;
  if (input_of(self, "get_input", args, 0, &input) != 0) return -1;
  return graph_give(self->binding.arrays[graph_input_entry(&self->graph, input)], result);
}

int graph_get_num_inputs(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct graph_executor *self = handle;
  (void)args;
  if (value_count("get_num_inputs", num_args, 0, 0) != 0) return -1;
  *result = dso_int((int64_t)self->graph.num_inputs);
  return 0;
}

int graph_get_input_index(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct graph_executor *self = handle;
  struct span name;
  if (value_count("get_input_index", num_args, 1, 1) != 0 ||
      value_text("get_input_index", args, 0, &name) != 0)
    return -1;
  size_t input = graph_find_input(&self->graph, name);
  *result = dso_int(input != GRAPH_NO_INDEX ? (int64_t)input : -1);
  return 0;
}

/* [name, shape, data type] of an input. */
static dso_array_object *describe(const struct graph_executor *self, size_t input) {
  const DLTensor *tensor = &self->binding.arrays[graph_input_entry(&self->graph, input)]->tensor;
  struct span name = graph_input_node(&self->graph, input)->name;
  char dtype[DTYPE_NAME_SIZE];
  dso_array_object *row = array_object_new(3);
  if (row == NULL) return NULL;
  dso_object *shape = shape_object_new((size_t)tensor->ndim, tensor->shape);
  if (shape != NULL) row->items[1] = any_of_object(shape);
  dtype_name(tensor->dtype, dtype);
  if (shape != NULL && object_make_string(&row->items[0], 1, name.data, name.size) == 0 &&
      object_make_string(&row->items[2], 1, dtype, strlen(dtype)) == 0)
    return row;
  if (shape != NULL) raised_set("OutOfMemoryError", "no memory for a result");
  object_release(&row->object);
  return NULL;
}

/* An Array of them, without the parameters. */
int graph_get_input_info(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct graph_executor *self = handle;
  int64_t count = 0, row = 0;
  (void)args;
  if (value_count("get_input_info", num_args, 0, 0) != 0) return -1;
  for (size_t i = 0; i < self->graph.num_inputs; i++) count += !self->is_param[i];
  dso_array_object *rows = array_object_new(count);
  if (rows == NULL) return -1;
  for (size_t i = 0; i < self->graph.num_inputs; i++) {
    if (self->is_param[i]) continue;
    dso_array_object *one = describe(self, i);
    if (one == NULL) {
      object_release(&rows->object);
      return -1;
    }
    rows->items[row++] = any_of_object(one);
  }
  *result = any_of_object(rows);
  return 0;
}
