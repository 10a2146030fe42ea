/* Graph JSON: a graph that is accepted has all indices in range, and operators in order. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void require(int truth) {
  if (!truth) abort();
}

static void check_entry(const struct graph *graph, const struct graph_entry *entry) {
  require(entry->ndim >= 0 && entry->ndim <= GRAPH_MAX_NDIM);
  for (int i = 0; i < entry->ndim; i++) require(entry->shape[i] >= 0);
  require(entry->leader < graph->num_entries);
  require(graph->entries[entry->leader].storage_id == entry->storage_id);
}

static void check_node(const struct graph *graph, const struct graph_node *node) {
  require(node->num_outputs <= graph->num_entries);
  require(node->first_output <= graph->num_entries - node->num_outputs);
  for (size_t i = 0; i < node->num_inputs; i++) {
    require(node->inputs[i] < graph->num_entries);
    require(node->inputs[i] < node->first_output || node->function.data == NULL);
  }
  (void)graph_find_node(graph, node->name);
  (void)graph_calls(node, GRAPH_NOP);
}

static void check(struct graph *graph) {
  size_t twice;
  for (size_t i = 0; i < graph->num_entries; i++) check_entry(graph, &graph->entries[i]);
  for (size_t i = 0; i < graph->num_nodes; i++) check_node(graph, &graph->nodes[i]);
  for (size_t i = 0; i < graph->num_outputs; i++) require(graph->outputs[i] < graph->num_entries);
  if (graph_sort_names(graph, &twice) != 0) return;
  require(twice == GRAPH_NO_INDEX || twice < graph->num_inputs);
  for (size_t i = 0; i < graph->num_inputs; i++) {
    require(graph->inputs[i] < graph->num_nodes);
    size_t found = graph_find_input(graph, graph_input_node(graph, i)->name);
    require(found == i || (twice != GRAPH_NO_INDEX && found < graph->num_inputs));
    require(graph_input_entry(graph, i) < graph->num_entries);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  struct graph graph;
  const char *kind, *message;
  char *text = malloc(nbytes > 0 ? nbytes : 1); /* its end is the end of a block */
  if (nbytes > 0) memcpy(text, data, nbytes);
  if (nbytes % 8 == 0) (void)heap_fail_at(1 + (long)(nbytes / 8 % 40));
  if (graph_parse(&graph, (struct span){text, nbytes}, "fuzz") == 0) {
    (void)heap_fail_at(0);
    check(&graph);
    graph_free(&graph);
  } else if (!raised_look(&kind, &message) || message[0] == '\0') abort();
  (void)heap_fail_at(0);
  raised_forget();
  free(text);
  return 0;
}
