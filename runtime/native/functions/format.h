/* Python's str.format, for arguments that are shown as text. */
#pragma once

#include "functions/shown.h"

/* Append a format with its fields replaced by values: {}, {0}, {!r}, {:>8.3}. Returns 0, or -1 with
 * ValueError or IndexError raised. */
int format_values(struct text *text, const char *function, struct span format,
                  const dso_any *values, int32_t count);
