/* ufunc.h: functions of elements, which broadcast their arguments as NumPy's do. */
#ifndef DSO_PACKER_NUMBA_UFUNC_H
#define DSO_PACKER_NUMBA_UFUNC_H

#include "call.h"

enum { NB_MOST_OPERANDS = 32, NB_MOST_DIMS = 64, NB_MOST_CORE = 16 };

/* Numba's loop over `dims[0]` elements: the address of each operand, its steps in bytes; then the
 * sizes of the core dimensions in `dims`, and the steps of each operand along its own. */
typedef void (*nb_loop)(char **args, const int64_t *dims, const int64_t *steps, void *data);

typedef struct {
  uint8_t code, bits; /* DLPack's */
  uint8_t align;      /* in bytes */
  int8_t num_core;
  const int8_t *core; /* the number of each core dimension */
} nb_operand;

/* One signature of a function: inputs, then outputs. */
typedef struct {
  const dso_function *function;
  const nb_operand *operands;
  nb_loop loop;
  int32_t num_inputs, num_outputs;
  int32_t num_core; /* dimensions in all */
  int32_t allocates;
} nb_ufunc;

#pragma GCC visibility push(hidden)
/* Compute with the loop that NumPy would choose; with `exact_first`, one whose inputs have exactly
 * the types comes before the first that fits. An output of None is allocated, and stored in
 * `results`. `signatures` is for messages; 0, or -1 with an error. */
int nb_ufunc_call(const nb_ufunc *loops, int32_t count, int exact_first, const char *signatures,
                  const dso_any *args, dso_any *results);
/* Return the number of that loop; -1 if none fits. */
int32_t nb_ufunc_choose(const nb_ufunc *loops, int32_t count, int exact_first, const dso_any *args);

/* NumPy's casting "safe"; and "same_kind" for types that are not safe. */
int nb_is_safe(DLDataType from, DLDataType to);
int nb_is_same_kind(DLDataType from, DLDataType to);
/* Convert an array to another one of the same shape; no float16 is written. */
void nb_cast(const DLTensor *from, const DLTensor *to);
/* The step along an axis, in bytes. */
int64_t nb_step_of(const DLTensor *tensor, int32_t axis);
#pragma GCC visibility pop

#endif
