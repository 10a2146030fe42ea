/* The global functions of this folder. */
#pragma once

#include "functions/arguments.h"

/* ---- sort.c, topk.c */

GLOBAL_FUNCTION(global_sort);
GLOBAL_FUNCTION(global_argsort);
GLOBAL_FUNCTION(global_argsort_nms);
GLOBAL_FUNCTION(global_topk);

/* ---- random.c */

GLOBAL_FUNCTION(global_random_seed);
GLOBAL_FUNCTION(global_random_uniform);
GLOBAL_FUNCTION(global_random_normal);
GLOBAL_FUNCTION(global_random_randint);
GLOBAL_FUNCTION(global_random_fill);

/* ---- tensor_cache.c, params.c, memory.c */

GLOBAL_FUNCTION(global_tensor_cache_get);
GLOBAL_FUNCTION(global_tensor_cache_update);
GLOBAL_FUNCTION(global_tensor_cache_remove);
GLOBAL_FUNCTION(global_tensor_cache_clear);
GLOBAL_FUNCTION(global_param_array_from_cache);
GLOBAL_FUNCTION(global_param_array_from_cache_by_name);
GLOBAL_FUNCTION(global_param_array_from_cache_by_name_unpacked);
GLOBAL_FUNCTION(global_param_module_from_cache);
GLOBAL_FUNCTION(global_param_module_from_cache_by_name);
GLOBAL_FUNCTION(global_memory_manager_clear);

/* ---- sample.c, logits.c */

GLOBAL_FUNCTION(global_sample_top_p_from_logits);
GLOBAL_FUNCTION(global_sample_top_p_from_prob);
GLOBAL_FUNCTION(global_multinomial_from_uniform);
GLOBAL_FUNCTION(global_apply_repetition_penalty);
GLOBAL_FUNCTION(global_apply_presence_and_frequency_penalty);
GLOBAL_FUNCTION(global_apply_softmax_with_temperature);

/* ---- nonzero.c, unique.c, print.c */

GLOBAL_FUNCTION(global_nonzero);
GLOBAL_FUNCTION(global_shape_to_tensor);
GLOBAL_FUNCTION(global_unique);
GLOBAL_FUNCTION(global_print);
GLOBAL_FUNCTION(global_assert_op);
GLOBAL_FUNCTION(global_debug_print);
GLOBAL_FUNCTION(global_invoke_debug_func);
