/* A checked graph: operators in the order in which they run, and the arrays between them. */
#pragma once

#include "abi/text.h"
#include "blob/name_order.h"
#include "scan/json.h"

/* Functions of the executor: the output is the input in another shape, or on another device. */
#define GRAPH_NOP "__nop"
#define GRAPH_COPY "__copy"

enum { GRAPH_MAX_NDIM = 64, GRAPH_NO_DEVICE = -1 };

struct graph_node {
  struct span name;
  struct span function; /* data is NULL for an input */
  const size_t *inputs; /* the entries that it reads */
  size_t num_inputs;
  size_t first_output, num_outputs; /* the entries that it writes */
  int flatten;                      /* the function receives arrays of one dimension */
};

/* An array. */
struct graph_entry {
  const int64_t *shape;
  int ndim;
  DLDataType dtype;
  size_t nbytes;
  int64_t storage_id; /* entries with equal ones share their memory */
  size_t leader;      /* the first entry with this storage_id */
  int device_type;    /* a DLDeviceType, or GRAPH_NO_DEVICE */
};

struct graph {
  size_t num_nodes, num_entries, num_inputs, num_outputs;
  struct graph_node *nodes; /* each after the nodes that it reads */
  struct graph_entry *entries;
  size_t *inputs;          /* the nodes of the inputs, by index */
  struct name_order names; /* of the inputs */
  size_t *outputs;         /* entries */
  int has_c_names;         /* a look-up of an input finds "a_1" for "a.1" */
  const struct json *json; /* has the names; or NULL */
  void *blocks;
};

static const size_t GRAPH_NO_INDEX = NO_NAME;

/* Parse graph JSON and check it; no array is allocated. `where` is the graph's name in messages.
 * Returns 0, or -1 with BlobFormatError or OutOfMemoryError raised, and nothing to free. */
int graph_parse(struct graph *graph, struct span text, const char *where);
void graph_free(struct graph *graph);

/* Zeroed memory that graph_free frees. NULL with OutOfMemoryError raised. */
void *graph_allocate(struct graph *graph, size_t count, size_t itemsize);

/* Sort the names of the inputs. Returns 0 with in *twice the first input whose name an earlier one
 * has, or GRAPH_NO_INDEX; or -1 with OutOfMemoryError raised. */
int graph_sort_names(struct graph *graph, size_t *twice);

/* The index of an input or a node, or GRAPH_NO_INDEX. */
size_t graph_find_input(const struct graph *graph, struct span name);
size_t graph_find_node(const struct graph *graph, struct span name);

/* The entry of an input. */
static inline size_t graph_input_entry(const struct graph *graph, size_t input) {
  return graph->nodes[graph->inputs[input]].first_output;
}

static inline const struct graph_node *graph_input_node(const struct graph *graph, size_t input) {
  return &graph->nodes[graph->inputs[input]];
}

/* True if an operator has this function. */
int graph_calls(const struct graph_node *node, const char *function);

/* Add "float32[1, 2]". */
void graph_add_type(struct text *text, DLDataType dtype, int ndim, const int64_t *shape);
