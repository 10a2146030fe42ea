/* GraphExecutor: a module that runs a graph. Python holds one (python/graph.c). */
#pragma once

#include "graph/binding.h"
#include "module/module.h"

struct graph_executor {
  dso_module module;
  struct graph graph;
  struct binding binding;
  unsigned char *is_set, *is_param; /* by input */
};

/* Make an executor of a graph, which it takes over, also on failure. `finder` finds operators, and
 * the function of linked parameters; `owner` keeps what it finds, or is NULL. NULL with the error
 * raised. */
struct graph_executor *graph_executor_new(struct graph *graph, const struct operator_finder *finder,
                                          dso_object *owner, const DLDevice *devices,
                                          int num_devices);

/* Set a parameter: bound, or copied if an operator needs other memory. Returns 0, or -1 raised. */
int graph_executor_set_param(struct graph_executor *self, size_t input, dso_tensor_object *array);

/* The tensor of a value, owned, as an entry has it: else ValueError "<what>: expected <type>, found
 * <type>" is raised. `what` is freed. */
dso_tensor_object *graph_matching(struct text *what, const struct graph_entry *entry,
                                  const dso_any *value);

/* True if a tensor has the shape and data type of an entry; TVM's uint1 may be a bool. */
int graph_is_type(const struct graph_entry *entry, const DLTensor *tensor);

/* Add ": expected <type>, found <type>". */
void graph_add_types(struct text *text, const struct graph_entry *entry, const DLTensor *tensor);

/* A tensor in the entry's data type: the same, or a view of a uint1. Owned. */
dso_tensor_object *graph_as_type(const struct graph_entry *entry, dso_tensor_object *array);

/* Finds the operators of an executor in the imports of a module (graph_operators.c). */
struct operator_finder graph_operators(dso_module *factory);

/* Call a function that returns an address, with an integer unless `argument` is NULL. Returns 0 with
 * *address NULL if there is none, or -1 raised. */
int call_for_address(dso_function *function, const char *name, const int64_t *argument,
                     const void **address);

/* Set the parameters that were linked into a library (graph_linked.c). Returns 0, or -1 raised. */
int graph_set_linked(struct graph_executor *self, const struct operator_finder *finder);

/* Read the metadata of a library, which its function AOT_METADATA returns, as a graph of one
 * operator (aot_metadata.c). Returns 0, or -1 raised. */
#define AOT_METADATA "get_c_metadata"
int aot_graph_read(struct graph *graph, dso_function *get_c_metadata);

/* The functions of an executor; the last has no name (graph_functions.c). */
struct graph_function {
  const char *name;
  dso_safe_call call;
};
extern const struct graph_function graph_functions[];

/* The function of a name, or NULL. */
dso_safe_call graph_function_find(const char *name);

/* Raise KeyError "no <what> 'name'", with near names. Returns -1. */
int graph_no_name(const struct graph_executor *self, const char *what, struct span name,
                  int is_node);
