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
    {NULL, NULL},
};
