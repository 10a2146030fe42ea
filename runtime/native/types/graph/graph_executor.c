/* GraphExecutor: its making, its parameters, and the node. */
#include "types/graph/graph_executor.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "types/graph/graph_factory.h"

static int find(dso_module *module, const char *name, dso_function **function) {
  dso_safe_call call = graph_function_find(name);
  if (call == NULL) return 0;
  *function = module_function_new(module, call, module);
  return *function != NULL ? 1 : -1;
}

static int visit_functions(dso_module *module, dso_visit_function visit, void *context) {
  int status = 0;
  (void)module;
  for (size_t i = 0; graph_functions[i].name != NULL && status == 0; i++)
    status = visit(context, graph_functions[i].name, NULL);
  return status;
}

static const char *entry(dso_module *module) {
  (void)module;
  return "run";
}

static void end(dso_module *module) {
  struct graph_executor *self = (struct graph_executor *)module;
  binding_free(&self->binding);
  graph_free(&self->graph);
  free(self->is_set);
  free(self->is_param);
}

static const struct module_type executor_type = {
    .find = find,
    .visit_functions = visit_functions,
    .entry = entry,
    .end = end,
};

const struct graph_executor *graph_executor_of(const dso_any *value) {
  const dso_module *module =
      value->type_index == DSO_MODULE ? module_of_object(value->v_ptr) : NULL;
  return module != NULL && module->type == &executor_type ? (const struct graph_executor *)module
                                                          : NULL;
}

static int make(struct graph_executor *self, const struct operator_finder *finder,
                const DLDevice *devices, int num_devices) {
  self->is_set = heap_new_zeroed(self->graph.num_inputs + 1, 1);
  self->is_param = heap_new_zeroed(self->graph.num_inputs + 1, 1);
  if (self->is_set == NULL || self->is_param == NULL)
    return raised_format("OutOfMemoryError", "no memory for a graph");
  if (binding_make(&self->binding, &self->graph, finder, devices, num_devices) != 0) return -1;
  return graph_set_linked(self, finder);
}

struct graph_executor *graph_executor_new(struct graph *graph, const struct operator_finder *finder,
                                          dso_object *owner, const DLDevice *devices,
                                          int num_devices) {
  static const char key[] = "GraphExecutor";
  struct graph_executor *self =
      module_new(&executor_type, (struct span){key, sizeof key - 1}, sizeof *self, owner);
  if (self == NULL) {
    graph_free(graph);
    return NULL;
  }
  self->graph = *graph;
  *graph = (struct graph){0};
  if (make(self, finder, devices, num_devices) == 0) return self;
  module_release(&self->module);
  return NULL;
}

/* ---- Types */

static int is_legacy_bool(const struct graph_entry *entry, const DLTensor *tensor) {
  return tensor->dtype.code == 1 && tensor->dtype.bits == 1 && tensor->dtype.lanes == 1 &&
         entry->dtype.code == 6 && entry->dtype.bits == 8 && entry->dtype.lanes == 1;
}

int graph_is_type(const struct graph_entry *entry, const DLTensor *tensor) {
  int is_same = entry->ndim == tensor->ndim && entry->dtype.code == tensor->dtype.code &&
                entry->dtype.bits == tensor->dtype.bits &&
                entry->dtype.lanes == tensor->dtype.lanes;
  is_same |= entry->ndim == tensor->ndim && is_legacy_bool(entry, tensor);
  for (int i = 0; is_same && i < entry->ndim; i++) is_same = entry->shape[i] == tensor->shape[i];
  return is_same;
}

void graph_add_types(struct text *text, const struct graph_entry *entry, const DLTensor *tensor) {
  text_format(text, ": expected ");
  graph_add_type(text, entry->dtype, entry->ndim, entry->shape);
  text_format(text, ", found ");
  graph_add_type(text, tensor->dtype, tensor->ndim, tensor->shape);
}

dso_tensor_object *graph_as_type(const struct graph_entry *entry, dso_tensor_object *array) {
  if (is_legacy_bool(entry, &array->tensor))
    return graph_view(array, entry->dtype, entry->ndim, entry->shape);
  object_retain(&array->object);
  return array;
}

static dso_tensor_object *adopt(const dso_any *value) {
  dso_object *object = tensor_object_adopt(value->v_ptr, NULL, NULL);
  if (object != NULL && tensor_value_is_readonly(value))
    tensor_object_mark(object, TENSOR_READ_ONLY);
  return (dso_tensor_object *)(void *)object;
}

dso_tensor_object *graph_matching(struct text *what, const struct graph_entry *entry,
                                  const dso_any *value) {
  dso_tensor_object *array = NULL, *typed = NULL;
  int is_pointer = value->type_index == DSO_DLTENSOR_PTR && value->v_ptr != NULL;
  if (value->type_index == DSO_TENSOR) array = value->v_ptr;
  if (array != NULL) object_retain(&array->object);
  else if (is_pointer) array = adopt(value);
  else
    (void)raised_format("TypeError", "%s: expected a tensor, found a value of type index %d",
                        text_of(what), (int)value->type_index);
  if (array != NULL && graph_is_type(entry, &array->tensor)) {
    typed = graph_as_type(entry, array);
  } else if (array != NULL) {
    graph_add_types(what, entry, &array->tensor);
    raised_set("ValueError", text_of(what));
  }
  text_free(what);
  if (array != NULL) object_release(&array->object);
  return typed;
}

int graph_executor_set_param(struct graph_executor *self, size_t input, dso_tensor_object *array) {
  size_t place = graph_input_entry(&self->graph, input);
  int status = binding_bind(&self->binding, place, array);
  if (status == 0) status = binding_copy(&self->binding, place, &array->tensor);
  if (status < 0) return -1;
  self->is_set[input] = self->is_param[input] = 1;
  return 0;
}
