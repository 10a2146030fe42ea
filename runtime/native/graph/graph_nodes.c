/* The nodes of graph JSON. */
#include <string.h>

#include "graph/reading.h"

enum { MAX_INT32 = 0x7fffffff };

static const struct json *list_of(const struct reading *self, const char *key) {
  const struct json *value = json_member(self->fields, key);
  if (value != NULL && value->type == JSON_LIST) return value;
  (void)wrong(self, key, value, "a list");
  return NULL;
}

/* ": <key>" for messages. */
struct field {
  char text[32];
};

static struct field field_of(const char *key) {
  struct field field = {": "};
  strncat(field.text, key, sizeof field.text - 3);
  return field;
}

static int read_text(const struct reading *self, const struct json *fields, const char *key,
                     struct span *text) {
  const struct json *value = json_member(fields, key);
  if (value == NULL || value->type != JSON_TEXT || value->size == 0)
    return wrong(self, field_of(key).text, value, "text");
  if (!json_is_unicode(value))
    return wrong(self, field_of(key).text, value, "Unicode, without half a surrogate pair");
  *text = (struct span){value->text, value->size};
  return 0;
}

/* TVM writes the numbers of an operator's attributes as text. */
static int64_t number_of(const struct json *value) {
  int64_t number = 0;
  if (value->type == JSON_INTEGER) return value->integer;
  if (value->type != JSON_TEXT || value->size == 0 || value->size >= 10) return -1;
  for (size_t i = 0; i < value->size; i++) {
    if (value->text[i] < '0' || value->text[i] > '9') return -1;
    number = number * 10 + (value->text[i] - '0');
  }
  return number;
}

static int read_count(const struct reading *self, const struct json *attrs, const char *key,
                      size_t otherwise, size_t *count) {
  const struct json *value = attrs != NULL ? json_member(attrs, key) : NULL;
  *count = otherwise;
  if (value == NULL) return 0;
  int64_t number = number_of(value);
  if (number < 0 || number >= MAX_INT32) return wrong(self, field_of(key).text, value, "a count");
  *count = (size_t)number;
  return 0;
}

static int read_node_inputs(struct reading *self, const struct json *info,
                            struct graph_node *node) {
  const struct json *list = json_member(info, "inputs");
  if (list == NULL) return 0;
  if (list->type != JSON_LIST) return wrong(self, ": inputs", list, "a list");
  size_t *inputs = graph_allocate(self->graph, list->size, sizeof *inputs);
  if (inputs == NULL) return -1;
  self->place = PLACE_INPUT;
  for (size_t i = 0; i < list->size; i++) {
    self->number = i;
    if (read_entry(self, &list->items[i], self->node, &inputs[i]) != 0) return -1;
  }
  self->place = PLACE_NODE;
  node->inputs = inputs;
  node->num_inputs = list->size;
  return 0;
}

static int read_node_outputs(const struct reading *self, const struct json *attrs,
                             const struct json *row_ptr, struct graph_node *node) {
  if (read_count(self, attrs, "num_outputs", 1, &node->num_outputs) != 0) return -1;
  const struct json *stop = &row_ptr->items[self->node + 1];
  node->first_output = (size_t)row_ptr->items[self->node].integer;
  size_t end = node->first_output + node->num_outputs;
  if (stop->type == JSON_INTEGER && stop->integer == (int64_t)end) return 0;
  return wrong(self, ": node_row_ptr", stop, "%zu (%zu outputs)", end, node->num_outputs);
}

static int read_function(const struct reading *self, const struct json *attrs,
                         struct graph_node *node) {
  struct span function = {0};
  const struct json none = {.type = JSON_OBJECT};
  if (read_text(self, attrs != NULL ? attrs : &none, "func_name", &function) != 0) return -1;
  node->function = function;
  if (!graph_calls(node, GRAPH_NOP) && !graph_calls(node, GRAPH_COPY)) return 0;
  if (node->num_inputs == 1 && node->num_outputs == 1) return 0;
  struct text text = {0};
  add_place(self, &text, ": inputs and outputs of ");
  text_format(&text, "%s, expected one and one, found '%zu and %zu'", function.data,
              node->num_inputs, node->num_outputs);
  return wrong_text(self, &text);
}

/* The name is known. */
static int read_rest(struct reading *self, const struct json *info, const struct json *row_ptr,
                     struct graph_node *node) {
  const struct json *attrs = json_member(info, "attrs"), *op = json_member(info, "op");
  size_t count;
  if (attrs != NULL && attrs->type != JSON_OBJECT)
    return wrong(self, ": attrs", attrs, "an object");
  int is_input = json_is_text(op, "null");
  if (!is_input && !json_is_text(op, "tvm_op"))
    return wrong(self, ": op", op, "'null' or 'tvm_op'");
  if (read_node_inputs(self, info, node) != 0) return -1;
  if (read_node_outputs(self, attrs, row_ptr, node) != 0) return -1;
  if (is_input && (node->num_inputs > 0 || node->num_outputs != 1))
    return wrong(self, ": an input", json_member(info, "inputs"),
                 "nothing that it reads, one output");
  if (read_count(self, attrs, "num_inputs", node->num_inputs, &count) != 0) return -1;
  if (count != node->num_inputs)
    return wrong(self, ": num_inputs", json_member(attrs, "num_inputs"), "its %zu inputs",
                 node->num_inputs);
  if (!is_input && read_function(self, attrs, node) != 0) return -1;
  if (read_count(self, attrs, "flatten_data", 0, &count) != 0) return -1;
  node->flatten = count != 0;
  return 0;
}

static int read_node(struct reading *self, const struct json *info, const struct json *row_ptr) {
  struct graph_node *node = &self->graph->nodes[self->node];
  self->place = PLACE_INDEX;
  if (info->type != JSON_OBJECT) return wrong(self, "", info, "an object");
  if (read_text(self, info, "name", &node->name) != 0) return -1;
  self->place = PLACE_NODE;
  return read_rest(self, info, row_ptr, node);
}

int read_nodes(struct reading *self) {
  struct graph *graph = self->graph;
  const struct json *infos = list_of(self, "nodes");
  const struct json *row_ptr = infos != NULL ? list_of(self, "node_row_ptr") : NULL;
  if (row_ptr == NULL) return -1;
  if (row_ptr->size != infos->size + 1 || !is_index(&row_ptr->items[0], 1))
    return wrong(self, "node_row_ptr", row_ptr, "%zu offsets that begin with 0", infos->size + 1);
  graph->nodes = graph_allocate(graph, infos->size + 1, sizeof *graph->nodes);
  if (graph->nodes == NULL) return -1;
  for (self->node = 0; self->node < infos->size; self->node++, graph->num_nodes++)
    if (read_node(self, &infos->items[self->node], row_ptr) != 0) return -1;
  graph->num_entries = (size_t)row_ptr->items[infos->size].integer;
  self->node = 0;
  return 0;
}
