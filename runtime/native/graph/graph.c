/* The memory and the names of a graph. */
#include "graph/graph.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/dtype_name.h"
#include "abi/heap.h"
#include "abi/raised.h"

/* ---- Memory: blocks that are freed together */

struct block {
  struct block *older;
  size_t used, capacity;
  max_align_t bytes[];
};

enum { BLOCK_SIZE = 1 << 14 };

void *graph_allocate(struct graph *graph, size_t count, size_t itemsize) {
  struct block *block = graph->blocks;
  size_t nbytes;
  if (__builtin_mul_overflow(count, itemsize, &nbytes) || nbytes > SIZE_MAX / 2)
    nbytes = SIZE_MAX / 2;
  nbytes = (nbytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
  if (block == NULL || block->capacity - block->used < nbytes) {
    size_t capacity = nbytes > BLOCK_SIZE ? nbytes : BLOCK_SIZE;
    block = heap_new_zeroed(1, sizeof *block + capacity);
    if (block == NULL) return raised_null("OutOfMemoryError", "no memory for a graph");
    block->capacity = capacity;
    block->older = graph->blocks;
    graph->blocks = block;
  }
  void *start = (char *)block->bytes + block->used;
  block->used += nbytes;
  return start;
}

void graph_free(struct graph *graph) {
  struct block *block = graph->blocks;
  while (block != NULL) {
    struct block *older = block->older;
    free(block);
    block = older;
  }
  name_order_free(&graph->names);
  json_free(graph->json);
  *graph = (struct graph){0};
}

/* ---- Names */

int graph_sort_names(struct graph *graph, size_t *twice) {
  struct span *names = graph_allocate(graph, graph->num_inputs, sizeof *names);
  if (names == NULL) return -1;
  for (size_t i = 0; i < graph->num_inputs; i++) names[i] = graph_input_node(graph, i)->name;
  name_order_free(&graph->names);
  if (name_order_make(&graph->names, names, graph->num_inputs, sizeof *names) != 0) return -1;
  *twice = name_order_repeated(&graph->names);
  return 0;
}

/* TVM's ahead-of-time compiler names inputs so, and takes the names of the model too. */
static int is_c_name_of(struct span c_name, struct span name) {
  if (c_name.size != name.size) return 0;
  for (size_t i = 0; i < name.size; i++) {
    char c = name.data[i];
    int is_kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (c_name.data[i] != (is_kept ? c : '_')) return 0;
  }
  return 1;
}

static size_t find_c_name(const struct graph *graph, struct span name) {
  for (size_t i = 0; i < graph->num_inputs; i++)
    if (is_c_name_of(graph_input_node(graph, i)->name, name)) return i;
  return GRAPH_NO_INDEX;
}

size_t graph_find_input(const struct graph *graph, struct span name) {
  size_t found = name_order_find(&graph->names, name.data, name.size);
  return found == NO_NAME && graph->has_c_names ? find_c_name(graph, name) : found;
}

size_t graph_find_node(const struct graph *graph, struct span name) {
  for (size_t i = 0; i < graph->num_nodes; i++)
    if (span_compare(graph->nodes[i].name, name) == 0) return i;
  return GRAPH_NO_INDEX;
}

int graph_calls(const struct graph_node *node, const char *function) {
  return node->function.data != NULL &&
         span_compare(node->function, (struct span){function, strlen(function)}) == 0;
}

void graph_add_type(struct text *text, DLDataType dtype, int ndim, const int64_t *shape) {
  char name[DTYPE_NAME_SIZE];
  text_format(text, "%s[", dtype_name(dtype, name));
  for (int i = 0; i < ndim; i++) text_format(text, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
  text_add(text, "]", 1);
}
