/* The parameters of a GraphExecutor, from params dict files and other executors. */
#include <string.h>

#include "abi/raised.h"
#include "blob/arrays.h"
#include "types/graph/graph_factory.h"
#include "types/graph/graph_functions.h"
#include "types/values.h"
#include "vm/builtin.h"
#include "vm/object.h"

/* ---- Checks: nothing is set unless all can be */

static int refuse_extra(const struct graph *graph, const char *where,
                        const struct named_arrays *arrays) {
  struct text text = {0};
  size_t count = 0;
  text_format(&text, "%s: ", where);
  for (size_t i = 0; i < arrays->count; i++) {
    struct span name = arrays->items[i].name;
    if (graph_find_input(graph, name) != GRAPH_NO_INDEX || ++count > 8) continue;
    if (count > 1) text_add(&text, ", ", 2);
    text_shown(&text, name.data, name.size);
  }
  if (count > 8) text_format(&text, " and %zu more", count - 8);
  text_format(&text, " are not inputs of the graph");
  return text_raise(&text, "BlobFormatError");
}

int graph_check_param(const struct graph *graph, const char *where, size_t input,
                      const DLTensor *tensor) {
  const struct graph_entry *entry = &graph->entries[graph_input_entry(graph, input)];
  struct span name = graph_input_node(graph, input)->name;
  if (graph_is_type(entry, tensor)) return 0;
  struct text text = {0};
  text_format(&text, "%s: ", where);
  text_repr(&text, name.data, name.size);
  graph_add_types(&text, entry, tensor);
  return text_raise(&text, "BlobFormatError");
}

int graph_check_params(const struct graph *graph, const char *where,
                       const struct named_arrays *arrays) {
  for (size_t i = 0; i < arrays->count; i++)
    if (graph_find_input(graph, arrays->items[i].name) == GRAPH_NO_INDEX)
      return refuse_extra(graph, where, arrays);
  for (size_t i = 0; i < arrays->count; i++) {
    struct span name = arrays->items[i].name;
    size_t input = graph_find_input(graph, name);
    if (graph_check_param(graph, where, input, &arrays->items[i].tensor->tensor) != 0) return -1;
  }
  return 0;
}

/* ---- Setting */

int graph_set_array(struct graph_executor *self, size_t input, dso_tensor_object *array) {
  const struct graph_entry *entry = &self->graph.entries[graph_input_entry(&self->graph, input)];
  dso_tensor_object *typed = graph_as_type(entry, array);
  if (typed == NULL) return -1;
  int status = graph_executor_set_param(self, input, typed);
  object_release(&typed->object);
  return status;
}

/* A named array may have to be made readable first. */
static int set_named(struct graph_executor *self, size_t input, dso_tensor_object *array) {
  object_retain(&array->object);
  int status = ndarray_use(&array);
  if (status == 0) status = graph_set_array(self, input, array);
  object_release(&array->object);
  return status;
}

int graph_set_arrays(struct graph_executor *self, const char *where,
                     const struct named_arrays *arrays) {
  if (graph_check_params(&self->graph, where, arrays) != 0) return -1;
  for (size_t i = 0; i < arrays->count; i++) {
    struct span name = arrays->items[i].name;
    size_t input = graph_find_input(&self->graph, name);
    if (set_named(self, input, arrays->items[i].tensor) != 0) return -1;
  }
  return 0;
}

/* ---- load_params and share_params */

/* The bytes of an argument as a Bytes or Str object, which the arrays keep. Owned. */
static dso_object *take_bytes(const char *function, const dso_any *args, int32_t index) {
  const dso_any *value = &args[index];
  const dso_byte_array *bytes = value->v_ptr;
  if (value->type_index == DSO_BYTES) {
    object_retain(value->v_ptr);
    return value->v_ptr;
  }
  dso_object *object = NULL;
  if (value->type_index == DSO_BYTE_ARRAY_PTR && bytes != NULL)
    object = object_new_string(DSO_BYTES, bytes->data, (size_t)bytes->size);
  else if (value->type_index == DSO_SMALL_BYTES)
    object = object_new_string(DSO_BYTES, value->v_bytes, value->small_len);
  else
    (void)raised_format("TypeError", "%s: argument %d, expected bytes, found %s", function,
                        (int)index + 1, vm_type_name(value));
  return object;
}

static int read_params(const char *function, const dso_any *args, int32_t index,
                       struct named_arrays *arrays) {
  dso_object *object = take_bytes(function, args, index);
  if (object == NULL) return -1;
  const dso_byte_array *bytes = (const dso_byte_array *)(const void *)(object + 1);
  int status = named_arrays_read_params(bytes->data, (size_t)bytes->size, object, arrays);
  object_release(object);
  return status;
}

int graph_load_params(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct named_arrays arrays = {0};
  (void)result;
  if (value_count("load_params", num_args, 1, 1) != 0) return -1;
  if (read_params("load_params", args, 0, &arrays) != 0) return -1;
  int status = graph_set_arrays(handle, "params", &arrays);
  named_arrays_clear(&arrays);
  return status;
}

/* Replace each array by the other executor's. */
static int take_from(const struct graph_executor *other, struct named_arrays *arrays) {
  for (size_t i = 0; i < arrays->count; i++) {
    struct span name = arrays->items[i].name;
    size_t input = graph_find_input(&other->graph, name);
    if (input == GRAPH_NO_INDEX) return graph_no_name(other, "input", name, 0);
    dso_tensor_object *array = other->binding.arrays[graph_input_entry(&other->graph, input)];
    object_retain(&array->object);
    object_release(&arrays->items[i].tensor->object);
    arrays->items[i].tensor = array;
  }
  return 0;
}

int graph_share_params(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct named_arrays arrays = {0};
  (void)result;
  if (value_count("share_params", num_args, 2, 2) != 0) return -1;
  const struct graph_executor *other = graph_executor_of(&args[0]);
  if (other == NULL)
    return raised_format("TypeError",
                         "share_params: argument 1, expected a GraphExecutor, found %s",
                         vm_type_name(&args[0]));
  if (read_params("share_params", args, 1, &arrays) != 0) return -1;
  int status = take_from(other, &arrays);
  if (status == 0) status = graph_set_arrays(handle, "params", &arrays);
  named_arrays_clear(&arrays);
  return status;
}

/* ---- All parameters of a factory */

static dso_array_object *make_row(const struct named_array *array, used_tensor *used) {
  dso_tensor_object *tensor = used_tensor_get(used, array->tensor);
  dso_array_object *row = tensor != NULL ? array_object_new(2) : NULL;
  if (row == NULL) return NULL;
  if (object_make_string(&row->items[0], 1, array->name.data, array->name.size) == 0) {
    row->items[1] = any_of_object(tensor);
    object_retain(&tensor->object);
    return row;
  }
  raised_set("OutOfMemoryError", "no memory for a result");
  object_release(&row->object);
  return NULL;
}

/* Without a Map in C, an Array of [name, tensor]. */
int graph_params_array(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct factory *self = handle;
  (void)args;
  if (value_count("get_graph_params", num_args, 0, 0) != 0) return -1;
  dso_array_object *rows = array_object_new((int64_t)self->arrays->count);
  for (size_t i = 0; rows != NULL && i < self->arrays->count; i++) {
    dso_array_object *row = make_row(&self->arrays->items[i], &self->used[i]);
    if (row != NULL) rows->items[i] = any_of_object(row);
    else {
      object_release(&rows->object);
      rows = NULL;
    }
  }
  if (rows == NULL) return -1;
  *result = any_of_object(rows);
  return 0;
}
