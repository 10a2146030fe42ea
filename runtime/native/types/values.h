/* Arguments of the functions of module types: names and numbers. */
#pragma once

#include "blob/reader.h"

/* Each reads argument `index` of a function: 0, or -1 with TypeError raised. The text is borrowed
 * from the value. */
int value_text(const char *function, const dso_any *args, int32_t index, struct span *text);
int value_int(const char *function, const dso_any *args, int32_t index, int64_t *number);

/* Check that there are at least `least` and at most `most` arguments: 0, or -1 with TypeError. */
int value_count(const char *function, int32_t num_args, int32_t least, int32_t most);
