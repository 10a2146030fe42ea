/* Exceptions of kernels. */
#include "noted.h"

#include <stddef.h>

static _Thread_local const struct nb_error *noted;

void nb_note(const struct nb_error *error) {
  if (noted == NULL) noted = error;
}

const struct nb_error *nb_noted_replace(const struct nb_error *error) {
  const struct nb_error *before = noted;
  noted = error;
  return before;
}
