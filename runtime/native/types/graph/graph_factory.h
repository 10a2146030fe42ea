/* Model factories: a graph with its parameters, or the parameters alone (AOT). */
#pragma once

#include "types/graph/graph_executor.h"
#include "types/used_tensor.h"

struct factory {
  dso_module module;
  struct span graph_json; /* data is NULL for AOT */
  char *name;             /* of the model */
  char *where;            /* in messages */
  struct named_arrays *arrays;
  used_tensor *used; /* by array; executors share them */
};

/* The factory's own array of a name, readable and borrowed: 1, 0 if there is none, or -1 raised. */
int factory_array(const struct factory *self, struct span name, dso_tensor_object **array);

/* Make an executor; the arguments are devices (graph_create.c). */
int factory_create(void *handle, const dso_any *args, int32_t num_args, dso_any *result);

/* Check an array for an input, or all of a list for theirs: 0, or -1 with BlobFormatError
 * "<where>: ..." raised. */
int graph_check_param(const struct graph *graph, const char *where, size_t input,
                      const DLTensor *tensor);
int graph_check_params(const struct graph *graph, const char *where,
                       const struct named_arrays *arrays);

/* Set a parameter that was checked; or check and set a list of them, which `where` names. */
int graph_set_array(struct graph_executor *self, size_t input, dso_tensor_object *array);
int graph_set_arrays(struct graph_executor *self, const char *where,
                     const struct named_arrays *arrays);

/* get_graph_params: an Array of [name, tensor]. */
int graph_params_array(void *handle, const dso_any *args, int32_t num_args, dso_any *result);

/* The executor that a value holds, or NULL. */
const struct graph_executor *graph_executor_of(const dso_any *value);
