/* choose.h: which signature of a function fits the values of a call best, by the rules of Numba's
 * dispatcher. */
#ifndef DSO_PACKER_NUMBA_CHOOSE_H
#define DSO_PACKER_NUMBA_CHOOSE_H

#include "call.h"

/* Costs of conversions, the least first. */
enum { NB_EXACT = 0, NB_PROMOTE, NB_SAFE, NB_UNSAFE, NB_NO_FIT };

/* The type of one parameter. */
typedef struct nb_type {
  char kind;                 /* Number, Array, Tuple, Str, Bytes, None, Optional or Pointer */
  const char *costs;         /* of a number: a digit for each type, as in dispatch.py; else NULL */
  int32_t code, bits, count; /* count: of dimensions, or of items */
  char layout;
  int8_t is_mutable;
  int32_t align;
  const struct nb_type *items; /* of a tuple; the type of an optional value */
} nb_type;

/* 1 if the value has the type index, and no mark. */
DSO_FAST int nb_is_plain(const dso_any *value, int32_t type_index) {
  uint64_t head;
  __builtin_memcpy(&head, value, sizeof head);
  return head == (uint64_t)type_index;
}

#pragma GCC visibility push(hidden)
/* Return the index of a signature, or -1 after raising TypeError: none fits, or several equally.
 * `types` has `count` types for each signature. */
int nb_choose(const dso_function *function, const dso_any *args, int32_t count,
              const nb_type *types, int32_t num_signatures, const char *signatures);
#pragma GCC visibility pop

#endif
