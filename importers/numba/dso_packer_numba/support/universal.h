/* universal.h: functions of elements, which broadcast their arguments as NumPy's do. */
#ifndef DSO_PACKER_NUMBA_UNIVERSAL_H
#define DSO_PACKER_NUMBA_UNIVERSAL_H

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
} nb_universal;

#pragma GCC visibility push(hidden)
/* 1 if the inputs have the types of the signature. */
int nb_universal_fits(const nb_universal *self, const dso_any *args);
/* Compute. An output that is None is allocated, and stored in `results`; 0, or -1 with an error. */
int nb_universal_run(const nb_universal *self, const dso_any *args, dso_any *results);
#pragma GCC visibility pop

#endif
