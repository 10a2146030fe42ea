/* TVM's graph JSON (TVM, graph_executor.h): the whole, its inputs and its outputs.
 *
 *     nodes         one per operator or input, each after the nodes that it reads:
 *                   {"op": "null", "name": ..., "inputs": []}                        an input
 *                   {"op": "tvm_op", "name": ..., "inputs": [[node, output, version], ...],
 *                    "attrs": {"func_name", "num_inputs", "num_outputs", "flatten_data"}}
 *     arg_nodes     the inputs' nodes, in the order of their indices
 *     heads         the outputs: [node, output, version]
 *     node_row_ptr  the first entry of each node's outputs; at the end the number of entries
 *     attrs         per entry: "shape" list_shape, "dltype" list_str, "storage_id" list_int, and
 *                   optionally "device_index" list_int (DLDeviceType) and "storage_scope" list_str
 *
 * An entry is one array. Entries with one storage_id share their memory. Other attributes are
 * ignored. */
#include <stdarg.h>
#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "graph/reading.h"

/* ---- Messages */

void add_place(const struct reading *self, struct text *text, const char *field) {
  switch (self->place) {
    case PLACE_WHOLE: break;
    case PLACE_HEAD: text_format(text, "head %zu", self->number); break;
    case PLACE_INDEX: text_format(text, "node %zu", self->node); break;
    case PLACE_NODE:
    case PLACE_INPUT: text_format(text, "node %zu ", self->node); break;
    case PLACE_OUTPUT:
    case PLACE_NAME: text_format(text, "node "); break;
  }
  if (self->place >= PLACE_NODE && self->place <= PLACE_NAME) {
    const struct graph_node *node = &self->graph->nodes[self->node];
    text_shown(text, node->name.data, node->name.size);
  }
  if (self->place == PLACE_INPUT) text_format(text, ": input %zu", self->number);
  if (self->place == PLACE_OUTPUT) text_format(text, ": output %zu", self->number);
  text_format(text, "%s", field);
}

int wrong_text(const struct reading *self, struct text *text) {
  if (text->is_broken) raised_set("OutOfMemoryError", "no memory for a message");
  else (void)raised_format("BlobFormatError", "%s: %s", self->where, text_of(text));
  text_free(text);
  return -1;
}

int wrong(const struct reading *self, const char *field, const struct json *found,
          const char *expected, ...) {
  struct text text = {0};
  va_list values;
  va_start(values, expected);
  char *wanted = heap_format_list(expected, values);
  va_end(values);
  add_place(self, &text, field);
  text_format(&text, ", expected %s, found ", wanted != NULL ? wanted : "");
  text.is_broken |= wanted == NULL;
  free(wanted);
  json_shown(&text, found);
  return wrong_text(self, &text);
}

/* ---- Indices */

int is_index(const struct json *value, int64_t stop) {
  return value != NULL && value->type == JSON_INTEGER && value->integer >= 0 &&
         value->integer < stop;
}

/* Names are shown whole there. */
static int wrong_output(const struct reading *self, const struct graph_node *node,
                        const struct json *found) {
  struct text text = {0};
  add_place(self, &text, ": output");
  text_format(&text, ", expected one of %zu of ", node->num_outputs);
  text_repr(&text, node->name.data, node->name.size);
  text_add(&text, ", found ", 8);
  json_shown(&text, found);
  return wrong_text(self, &text);
}

int read_entry(const struct reading *self, const struct json *ref, size_t num_nodes,
               size_t *entry) {
  if (ref->type != JSON_LIST || ref->size < 2 || ref->size > 3)
    return wrong(self, "", ref, "[node, output, version]");
  if (!is_index(&ref->items[0], (int64_t)num_nodes))
    return wrong(self, ": node", &ref->items[0], "one of the %zu before it", num_nodes);
  const struct graph_node *node = &self->graph->nodes[ref->items[0].integer];
  if (!is_index(&ref->items[1], (int64_t)node->num_outputs))
    return wrong_output(self, node, &ref->items[1]);
  *entry = node->first_output + (size_t)ref->items[1].integer;
  return 0;
}

/* ---- Inputs and outputs */

static int refuse_twice(const struct reading *self, size_t input) {
  struct span name = graph_input_node(self->graph, input)->name;
  struct text text = {0};
  text_format(&text, "arg_nodes: the input ");
  text_shown(&text, name.data, name.size);
  text_format(&text, " occurs twice, expected once");
  return wrong_text(self, &text);
}

static int is_missing(const struct graph *graph, const struct graph_node *node) {
  return node->function.data == NULL && graph_find_input(graph, node->name) == GRAPH_NO_INDEX;
}

/* The names are shown as one list, cut like any value. */
static int check_none_missing(const struct reading *self) {
  const struct graph *graph = self->graph;
  struct json *names = heap_new((graph->num_nodes + 1) * sizeof *names);
  struct text text = {0};
  size_t count = 0;
  for (size_t i = 0; names != NULL && i < graph->num_nodes; i++) {
    struct span name = graph->nodes[i].name;
    if (is_missing(graph, &graph->nodes[i]))
      names[count++] = (struct json){.type = JSON_TEXT, .size = name.size, .text = name.data};
  }
  if (names != NULL && count == 0) {
    free(names);
    return 0;
  }
  text_format(&text, "arg_nodes: expected every input, ");
  text.is_broken |= names == NULL;
  if (names != NULL)
    json_shown(&text, &(struct json){.type = JSON_LIST, .size = count, .items = names});
  text_format(&text, " are missing");
  free(names);
  return wrong_text(self, &text);
}

/* Names are compared after all indices were read, so the first error of both is found last. */
static int read_inputs(struct reading *self) {
  struct graph *graph = self->graph;
  const struct json *list = json_member(self->fields, "arg_nodes");
  self->place = PLACE_WHOLE;
  if (list == NULL || list->type != JSON_LIST) return wrong(self, "arg_nodes", list, "a list");
  graph->inputs = graph_allocate(graph, list->size, sizeof *graph->inputs);
  if (graph->inputs == NULL) return -1;
  for (size_t i = 0; i < list->size; i++, graph->num_inputs++) {
    const struct json *index = &list->items[i];
    if (!is_index(index, (int64_t)graph->num_nodes)) break;
    if (graph->nodes[index->integer].function.data != NULL) break;
    graph->inputs[i] = (size_t)index->integer;
  }
  size_t twice;
  if (graph_sort_names(graph, &twice) != 0) return -1;
  if (twice != GRAPH_NO_INDEX) return refuse_twice(self, twice);
  if (graph->num_inputs < list->size)
    return wrong(self, "arg_nodes", &list->items[graph->num_inputs], "the index of an input");
  return check_none_missing(self);
}

static int read_outputs(struct reading *self) {
  struct graph *graph = self->graph;
  const struct json *list = json_member(self->fields, "heads");
  self->place = PLACE_WHOLE;
  if (list == NULL || list->type != JSON_LIST) return wrong(self, "heads", list, "a list");
  graph->outputs = graph_allocate(graph, list->size, sizeof *graph->outputs);
  if (graph->outputs == NULL) return -1;
  self->place = PLACE_HEAD;
  for (size_t i = 0; i < list->size; i++, graph->num_outputs++) {
    self->number = i;
    if (read_entry(self, &list->items[i], graph->num_nodes, &graph->outputs[i]) != 0) return -1;
  }
  return 0;
}

/* ---- The whole */

static int read_all(struct reading *self, struct span text) {
  char error[JSON_ERROR_SIZE];
  self->fields = self->graph->json = json_parse(text.data, text.size, error);
  if (self->fields == NULL) {
    struct text message = {.is_broken = error[0] == '\0'};
    text_format(&message, "%s", error);
    return wrong_text(self, &message);
  }
  if (self->fields->type != JSON_OBJECT) return wrong(self, "the whole", self->fields, "an object");
  if (read_nodes(self) != 0 || read_entries(self) != 0 || check_storage(self) != 0) return -1;
  if (check_own_functions(self) != 0 || read_inputs(self) != 0) return -1;
  return read_outputs(self);
}

int graph_parse(struct graph *graph, struct span text, const char *where) {
  struct reading reading = {.graph = graph, .where = where};
  *graph = (struct graph){0};
  if (read_all(&reading, text) == 0) return 0;
  graph_free(graph);
  return -1;
}
