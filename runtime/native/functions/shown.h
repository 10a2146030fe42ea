/* Values as text, as TVM's Python shows them: numbers, strings, shapes, tuples, and tensors in the
 * layout of NumPy. */
#pragma once

#include "abi/text.h"
#include "functions/arguments.h"

/* Append a value. Returns 0, or -1 with an error raised: a tensor of a device cannot be copied. */
int shown_value(struct text *text, const dso_any *value);

/* Append the elements of a tensor on the CPU. */
void shown_array(struct text *text, const struct array *array);
