/* Pointers that callers must not leave out: usually the result of a load that failed. */
#pragma once

#include <stddef.h>

#include "abi/raised.h"

/* True with TypeError "<function>: expected <what>, found NULL" raised if the pointer is NULL. */
static inline int is_null(const void *pointer, const char *function, const char *what) {
  return pointer == NULL &&
         raised_format("TypeError", "%s: expected %s, found NULL", function, what) != 0;
}
