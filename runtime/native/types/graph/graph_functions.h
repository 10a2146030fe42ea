/* Declarations that the functions of a GraphExecutor share. */
#pragma once

#include "types/graph/graph_executor.h"

#define GRAPH_FITNESS "aligned to 64 bytes for operators of TVM, writable where one writes"

static inline int graph_is_integer(const dso_any *value) {
  return value->type_index == DSO_INT || value->type_index == DSO_BOOL;
}

/* Returns 0, or -1 with IndexError "<what> <index>, expected 0 to <count - 1>" raised. */
int graph_check_index(const char *what, int64_t index, size_t count, size_t *checked);

/* Store an array, retained, as a result. Returns 0. */
int graph_give(dso_tensor_object *array, dso_any *result);

/* Safe calls whose handle is the executor (graph_inputs.c, graph_params.c). */
int graph_set_input(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
int graph_set_input_zero_copy(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
int graph_get_input(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
int graph_get_num_inputs(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
int graph_get_input_index(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
int graph_get_input_info(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
int graph_load_params(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
int graph_share_params(void *handle, const dso_any *args, int32_t num_args, dso_any *result);
