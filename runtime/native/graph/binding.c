/* A bound graph: how its slots and calls are made. */
#include "graph/binding.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"

/* ---- Operators, each looked up once per name */

/* The calls in the order of their functions' names. */
struct wanted {
  struct span name;
  size_t call;
};

static int compare_wanted(const void *left, const void *right) {
  const struct wanted *a = left, *b = right;
  int order = span_compare(a->name, b->name);
  return order != 0 ? order : (a->call > b->call) - (a->call < b->call);
}

static int is_same_name(const struct wanted *a, const struct wanted *b) {
  return span_compare(a->name, b->name) == 0;
}

/* The missing operators in the order of their first calls. */
static int refuse_missing(const struct binding *self, const struct wanted *wanted, size_t count) {
  struct text text = {0};
  size_t num_missing = 0;
  unsigned char *is_missing = heap_new_zeroed(self->num_calls + 1, 1);
  for (size_t i = 0; is_missing != NULL && i < count; i++)
    if ((i == 0 || !is_same_name(&wanted[i - 1], &wanted[i])) &&
        self->operators[wanted[i].call].function == NULL)
      is_missing[wanted[i].call] = 1;
  text.is_broken = is_missing == NULL;
  text_format(&text, "operators of the graph that no library has: ");
  for (size_t i = 0; is_missing != NULL && i < self->num_calls; i++) {
    if (!is_missing[i] || ++num_missing > 8) continue;
    if (num_missing > 1) text_add(&text, ", ", 2);
    text_shown(&text, self->callers[i]->function.data, self->callers[i]->function.size);
  }
  if (num_missing > 8) text_format(&text, " and %zu more", num_missing - 8);
  (void)text_raise(&text, "FunctionNotFoundError");
  free(is_missing);
  return -1;
}

static int find_sorted(struct binding *self, const struct operator_finder *finder,
                       const struct wanted *wanted, size_t count) {
  int is_missing = 0;
  for (size_t i = 0; i < count; i++) {
    struct operator *found = &self->operators[wanted[i].call];
    if (i > 0 && is_same_name(&wanted[i - 1], &wanted[i])) {
      *found = self->operators[wanted[i - 1].call];
      if (found->function != NULL) object_retain(&found->function->object);
      continue;
    }
    int has_nul = memchr(wanted[i].name.data, '\0', wanted[i].name.size) != NULL;
    int status = has_nul ? 0 : finder->find(finder->context, wanted[i].name.data, found);
    if (status < 0) return -1;
    is_missing |= status == 0;
  }
  return is_missing ? refuse_missing(self, wanted, count) : 0;
}

static int find_operators(struct binding *self, const struct operator_finder *finder) {
  struct wanted *wanted = heap_new_zeroed(self->num_calls + 1, sizeof *wanted);
  size_t count = 0;
  if (wanted == NULL) return raised_format("OutOfMemoryError", "no memory for a graph");
  for (size_t i = 0; i < self->num_calls; i++)
    if (!graph_calls(self->callers[i], GRAPH_COPY))
      wanted[count++] = (struct wanted){self->callers[i]->function, i};
  qsort(wanted, count, sizeof *wanted, compare_wanted);
  int status = find_sorted(self, finder, wanted, count);
  free(wanted);
  return status;
}

/* ---- Views */

static void add_view(struct binding *self, size_t root, size_t slot) {
  self->roots[slot] = root;
  self->next_view[slot] = self->next_view[root];
  self->next_view[root] = slot;
}

static int64_t num_elements(const DLTensor *tensor) {
  int64_t count = 1;
  for (int i = 0; i < tensor->ndim; i++) count *= tensor->shape[i];
  return count;
}

/* The slot that views an entry in one dimension. */
static int find_flat(struct binding *self, size_t *flat, size_t *slot) {
  size_t entry = *slot;
  if (flat[entry] == 0) {
    const DLTensor *tensor = &self->own[entry]->tensor;
    int64_t count = num_elements(tensor);
    dso_tensor_object *view = graph_view(self->own[entry], tensor->dtype, 1, &count);
    if (view == NULL) return -1;
    flat[entry] = self->num_slots++;
    self->own[flat[entry]] = view;
    add_view(self, self->roots[entry], flat[entry]);
  }
  *slot = flat[entry];
  return 0;
}

/* ---- Calls */

static void bind_argument(struct binding *self, const struct operator_finder *finder, size_t call,
                          size_t slot) {
  const struct operator *operator = &self->operators[call];
  struct call *bound = &self->calls[call];
  int32_t index = bound->count++;
  if (operator->function != NULL) {
    enum access access = finder->access(operator->declared, index);
    self->slots[slot].needs_alignment |= access == ACCESS_UNKNOWN;
    self->slots[slot].is_written |= access == ACCESS_WRITE;
  }
  bound->args[index] =
      (dso_any){.type_index = DSO_DLTENSOR_PTR, .v_ptr = &self->slots[slot].tensor};
}

static int make_call(struct binding *self, const struct operator_finder *finder,
                     const struct graph_node *node, size_t index, dso_any *args, size_t *flat) {
  struct call *call = &self->calls[index];
  const struct operator *operator = &self->operators[index];
  call->address = operator->function != NULL ? operator->function->safe_call : calls_copy;
  call->handle = operator->function;
  if (operator->direct != NULL) {
    call->address = operator->direct;
    call->handle = NULL;
  }
  call->args = args;
  for (size_t i = 0; i < node->num_inputs + node->num_outputs; i++) {
    size_t slot =
        i < node->num_inputs ? node->inputs[i] : node->first_output + i - node->num_inputs;
    if (node->flatten && find_flat(self, flat, &slot) != 0) return -1;
    bind_argument(self, finder, index, slot);
  }
  return 0;
}

static int make_calls(struct binding *self, const struct operator_finder *finder, size_t *flat) {
  dso_any *args = self->args;
  size_t index = 0;
  for (size_t i = 0; i < self->graph->num_nodes; i++) {
    const struct graph_node *node = &self->graph->nodes[i];
    if (graph_calls(node, GRAPH_NOP))
      add_view(self, self->roots[node->inputs[0]], node->first_output);
    else if (node->function.data != NULL) {
      if (make_call(self, finder, node, index++, args, flat) != 0) return -1;
      args += node->num_inputs + node->num_outputs;
    }
    self->stops[i] = index;
  }
  return 0;
}

/* ---- The whole */

/* Count calls and arguments. At most one slot for each entry and one for its flat view. */
static int allocate(struct binding *self) {
  const struct graph *graph = self->graph;
  size_t num_args = 0, num_slots = 2 * graph->num_entries + 1;
  for (size_t i = 0; i < graph->num_nodes; i++) {
    const struct graph_node *node = &graph->nodes[i];
    if (node->function.data == NULL || graph_calls(node, GRAPH_NOP)) continue;
    num_args += node->num_inputs + node->num_outputs;
    self->num_calls++;
  }
  self->slots = heap_new_zeroed(num_slots, sizeof *self->slots);
  self->own = heap_new_zeroed(num_slots, sizeof *self->own);
  self->arrays = heap_new_zeroed(num_slots, sizeof *self->arrays);
  self->roots = heap_new_zeroed(num_slots, sizeof *self->roots);
  self->next_view = heap_new_zeroed(num_slots, sizeof *self->next_view);
  self->calls = heap_new_zeroed(self->num_calls + 1, sizeof *self->calls);
  self->callers = heap_new_zeroed(self->num_calls + 1, sizeof *self->callers);
  self->operators = heap_new_zeroed(self->num_calls + 1, sizeof *self->operators);
  self->stops = heap_new_zeroed(graph->num_nodes + 1, sizeof *self->stops);
  self->args = heap_new_zeroed(num_args + 1, sizeof *self->args);
  if (self->slots == NULL || self->own == NULL || self->arrays == NULL || self->roots == NULL ||
      self->next_view == NULL || self->calls == NULL || self->callers == NULL ||
      self->operators == NULL || self->stops == NULL || self->args == NULL)
    return raised_format("OutOfMemoryError", "no memory for a graph");
  return 0;
}

static void list_callers(struct binding *self) {
  size_t count = 0;
  for (size_t i = 0; i < self->graph->num_nodes; i++) {
    const struct graph_node *node = &self->graph->nodes[i];
    if (node->function.data != NULL && !graph_calls(node, GRAPH_NOP)) self->callers[count++] = node;
  }
}

static int make_slots(struct binding *self, const struct operator_finder *finder,
                      const DLDevice *places) {
  size_t num_entries = self->graph->num_entries;
  if (graph_plan_memory(self->graph, places, self->own) != 0) return -1;
  size_t *flat = heap_new_zeroed(num_entries + 1, sizeof *flat);
  if (flat == NULL) return raised_format("OutOfMemoryError", "no memory for a graph");
  for (size_t i = 0; i < num_entries; i++) self->roots[i] = i;
  self->num_slots = num_entries;
  int status = make_calls(self, finder, flat);
  free(flat);
  for (size_t i = 0; i < self->num_slots && status == 0; i++) {
    self->arrays[i] = self->own[i];
    object_retain(&self->own[i]->object);
    self->slots[i].tensor = self->own[i]->tensor;
    status = call_devices_add(&self->devices, self->own[i]->tensor.device);
    if (status != 0)
      (void)raised_format("ValueError", "a graph: expected at most %d devices", CALLS_MAX_DEVICES);
  }
  return status;
}

int binding_make(struct binding *self, const struct graph *graph,
                 const struct operator_finder *finder, const DLDevice *devices, int num_devices) {
  *self = (struct binding){.graph = graph};
  DLDevice *places = heap_new_zeroed(graph->num_entries + 1, sizeof *places);
  int status = places != NULL ? 0 : raised_format("OutOfMemoryError", "no memory for a graph");
  if (status == 0) status = graph_place(graph, devices, num_devices, places);
  if (status == 0) status = allocate(self);
  if (status == 0) {
    list_callers(self);
    status = find_operators(self, finder);
  }
  if (status == 0) status = make_slots(self, finder, places);
  free(places);
  if (status != 0) binding_free(self);
  return status;
}

static void release_all(dso_tensor_object **arrays, size_t count) {
  for (size_t i = 0; arrays != NULL && i < count; i++)
    if (arrays[i] != NULL) object_release(&arrays[i]->object);
  free((void *)arrays);
}

void binding_free(struct binding *self) {
  size_t num_slots = self->graph != NULL ? 2 * self->graph->num_entries + 1 : 0;
  release_all(self->own, num_slots);
  release_all(self->arrays, num_slots);
  for (size_t i = 0; self->operators != NULL && i < self->num_calls; i++)
    if (self->operators[i].function != NULL) object_release(&self->operators[i].function->object);
  free(self->operators);
  free(self->slots);
  free(self->roots);
  free(self->next_view);
  free(self->calls);
  free((void *)self->callers);
  free(self->stops);
  free(self->args);
  *self = (struct binding){0};
}
