/* The CPU levels of a library: whether this processor can run its code. They are stored in the
 * symbol __packer_cpu_levels (docs/format.md, CPU levels). */
#pragma once

#include "library/checksums.h"

/* Refuse a library whose lowest level needs more than this processor has, and a level in the
 * environment variable DSO_CPU that the library or the processor does not have. A library without
 * the symbol passes. Return 0, or -1 with *error filled. */
int cpu_levels_check(checksums_find find, const void *library, struct load_error *error);
