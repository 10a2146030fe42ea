/* A bound graph: its operators, the memory of its arrays, and its calls.
 *
 * Every entry of the graph is a slot, and calls point to slots. Some slots are views of the memory
 * of an entry: the output of a __nop, and the flat arrays that an operator with flatten_data
 * receives. If the entry is bound to other memory, its views are too. */
#pragma once

#include "device/tensor_object.h"
#include "graph/calls.h"
#include "graph/graph.h"

/* The declaration of a parameter of a function. */
enum access {
  ACCESS_UNKNOWN, /* nothing, so it may rely on TVM's alignment */
  ACCESS_READ,
  ACCESS_WRITE
};

/* A function of an operator. */
struct operator{
  dso_function_object *function; /* owned; NULL for the executor's own */
  const void *declared;          /* for `access`; valid as long as the function */
  dso_safe_call direct; /* NULL, or the code itself, called without a handle: the function only adds
                         * checks that binding makes once */
};

/* Finds operators. */
struct operator_finder {
  void *context;
  /* Store the function of a name, owned. Returns 1, 0 if there is none, or -1 raised. */
  int (*find)(void *context, const char *name, struct operator* found);
  enum access (*access)(const void *declared, int32_t param);
};

struct binding {
  const struct graph *graph;
  size_t num_slots, num_calls;
  struct slot *slots;
  dso_tensor_object **own;    /* the slots' arrays before any other is bound */
  dso_tensor_object **arrays; /* the slots' arrays */
  size_t *roots;              /* the entry whose memory a slot views, or itself */
  size_t *next_view;          /* the next slot that views the same root, or 0 */
  struct call *calls;
  const struct graph_node **callers; /* the node of each call */
  size_t *stops;                     /* for each node the number of calls up to its end */
  struct operator* operators;        /* by call; functions that repeat are retained again */
  dso_any *args;
  struct call_devices devices;
  int is_running;
};

/* Allocate the arrays of a graph on the given devices; without any on the CPU. Returns 0, or -1
 * with DeviceError, FunctionNotFoundError or OutOfMemoryError raised, and nothing to free. */
int binding_make(struct binding *self, const struct graph *graph,
                 const struct operator_finder *finder, const DLDevice *devices, int num_devices);
void binding_free(struct binding *self);

/* Bind an entry to an array, which is retained. Returns 1, 0 if an operator needs other memory, or
 * -1 with an error raised. */
int binding_bind(struct binding *self, size_t entry, dso_tensor_object *array);

/* Copy an array into the memory that was allocated for an entry. Returns 0, or -1 raised. */
int binding_copy(struct binding *self, size_t entry, const DLTensor *array);

/* True if an entry views another one's memory, as the output of a __nop does. */
static inline int binding_is_view(const struct binding *self, size_t entry) {
  return self->roots[entry] != entry;
}

/* Make the calls from `first` to before `stop`. Returns 0, or -1 with the error raised. */
int binding_run(struct binding *self, size_t first, size_t stop);

/* Choose the device of each entry (memory.c): the first of its kind; without a kind the first, or
 * the CPU. Returns 0, or -1 with DeviceError raised. */
int graph_place(const struct graph *graph, const DLDevice *devices, int num_devices,
                DLDevice *places);

/* Make an array for each entry; arrays of one storage_id begin at the same address. Returns 0, or
 * -1 with an error raised; then some are made. */
int graph_plan_memory(const struct graph *graph, const DLDevice *places,
                      dso_tensor_object **arrays);

/* View an array with another shape or data type (memory.c). NULL with an error raised. */
dso_tensor_object *graph_view(dso_tensor_object *array, DLDataType dtype, int ndim,
                              const int64_t *shape);
