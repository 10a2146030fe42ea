/* The global functions of this folder. */
#ifndef DSO_PACKER_FUNCTIONS_GLOBAL_FUNCTIONS_H
#define DSO_PACKER_FUNCTIONS_GLOBAL_FUNCTIONS_H

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

#endif
