/* The table of the global functions that every program has. */
#include "device/device_set.h"
#include "functions/global_functions.h"
#include "module/global.h"
#include "vm/array_function.h"

/* Static: the one strong reference is never dropped. */
#define OBJECT(call)                                                                               \
  &(dso_function_object){.object = {.combined_ref_count = OBJECT_ONE, .type_index = DSO_FUNCTION}, \
                         .safe_call = (call)}

const struct built_in_function built_in_functions[] = {
    {"__tvm_set_device", &device_set_function},
    {"ffi.Array", &array_function},
    {"tvm.contrib.sort.sort", OBJECT(global_sort)},
    {"tvm.contrib.sort.argsort", OBJECT(global_argsort)},
    {"tvm.contrib.sort.argsort_nms", OBJECT(global_argsort_nms)},
    {"tvm.contrib.sort.topk", OBJECT(global_topk)},
    {"tvm.contrib.random.seed", OBJECT(global_random_seed)},
    {"tvm.contrib.random.uniform", OBJECT(global_random_uniform)},
    {"tvm.contrib.random.normal", OBJECT(global_random_normal)},
    {"tvm.contrib.random.randint", OBJECT(global_random_randint)},
    {"tvm.contrib.random.random_fill", OBJECT(global_random_fill)},
    {"tvm.contrib.random.random_fill_for_measure", OBJECT(global_random_fill)},
    {"relax.run.nonzero", OBJECT(global_nonzero)},
    {"relax.run.unique", OBJECT(global_unique)},
    {"relax.run.shape_to_tensor", OBJECT(global_shape_to_tensor)},
    {"relax.run.print", OBJECT(global_print)},
    {"relax.run.assert_op", OBJECT(global_assert_op)},
    {"vm.builtin.debug_print", OBJECT(global_debug_print)},
    {"vm.builtin.invoke_debug_func", OBJECT(global_invoke_debug_func)},
    {"vm.builtin.multinomial_from_uniform", OBJECT(global_multinomial_from_uniform)},
    {"vm.builtin.sample_top_p_from_prob", OBJECT(global_sample_top_p_from_prob)},
    {"vm.builtin.sample_top_p_from_logits", OBJECT(global_sample_top_p_from_logits)},
    {"vm.builtin.apply_softmax_with_temperature", OBJECT(global_apply_softmax_with_temperature)},
    {"vm.builtin.apply_repetition_penalty", OBJECT(global_apply_repetition_penalty)},
    {"vm.builtin.apply_presence_and_frequency_penalty",
     OBJECT(global_apply_presence_and_frequency_penalty)},
    {"vm.builtin.tensor_cache.get", OBJECT(global_tensor_cache_get)},
    {"vm.builtin.tensor_cache.update", OBJECT(global_tensor_cache_update)},
    {"vm.builtin.tensor_cache.remove", OBJECT(global_tensor_cache_remove)},
    {"vm.builtin.tensor_cache.clear", OBJECT(global_tensor_cache_clear)},
    {"vm.builtin.param_array_from_cache", OBJECT(global_param_array_from_cache)},
    {"vm.builtin.param_array_from_cache_by_name", OBJECT(global_param_array_from_cache_by_name)},
    {"vm.builtin.param_array_from_cache_by_name_unpacked",
     OBJECT(global_param_array_from_cache_by_name_unpacked)},
    {"vm.builtin.param_module_from_cache", OBJECT(global_param_module_from_cache)},
    {"vm.builtin.param_module_from_cache_by_name", OBJECT(global_param_module_from_cache_by_name)},
    {"vm.builtin.memory_manager.clear", OBJECT(global_memory_manager_clear)},
    {NULL, NULL},
};
