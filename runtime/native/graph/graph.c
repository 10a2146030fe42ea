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
  json_free(graph->json);
  *graph = (struct graph){0};
}

/* ---- Names */

static int compare(struct span left, struct span right) {
  size_t shorter = left.size < right.size ? left.size : right.size;
  int order = shorter > 0 ? memcmp(left.data, right.data, shorter) : 0;
  return order != 0 ? order : (left.size > right.size) - (left.size < right.size);
}

static int compare_names(const void *left, const void *right) {
  const struct graph_name *first = left, *second = right;
  int order = compare(first->text, second->text);
  return order != 0 ? order : (first->index > second->index) - (first->index < second->index);
}

int graph_sort_names(struct graph *graph, size_t *twice) {
  struct graph_name *names = graph_allocate(graph, graph->num_inputs, sizeof *names);
  if (names == NULL) return -1;
  for (size_t i = 0; i < graph->num_inputs; i++)
    names[i] = (struct graph_name){.text = graph_input_node(graph, i)->name, .index = i};
  if (graph->num_inputs > 0) qsort(names, graph->num_inputs, sizeof *names, compare_names);
  *twice = GRAPH_NO_INDEX;
  for (size_t i = 1; i < graph->num_inputs; i++)
    if (compare(names[i - 1].text, names[i].text) == 0 && names[i].index < *twice)
      *twice = names[i].index;
  graph->names = names;
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
  size_t low = 0, high = graph->num_inputs;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = compare(graph->names[middle].text, name);
    if (order == 0) return graph->names[middle].index;
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return graph->has_c_names ? find_c_name(graph, name) : GRAPH_NO_INDEX;
}

size_t graph_find_node(const struct graph *graph, struct span name) {
  for (size_t i = 0; i < graph->num_nodes; i++)
    if (compare(graph->nodes[i].name, name) == 0) return i;
  return GRAPH_NO_INDEX;
}

int graph_calls(const struct graph_node *node, const char *function) {
  return node->function.data != NULL &&
         compare(node->function, (struct span){function, strlen(function)}) == 0;
}

void graph_add_type(struct text *text, DLDataType dtype, int ndim, const int64_t *shape) {
  char name[DTYPE_NAME_SIZE];
  text_format(text, "%s[", dtype_name(dtype, name));
  for (int i = 0; i < ndim; i++) text_format(text, "%s%" PRId64, i > 0 ? ", " : "", shape[i]);
  text_add(text, "]", 1);
}
