/* Exceptions of kernels. */
#include "noted.h"

#include "array.h"

static _Thread_local const struct nb_exception *noted;

void nb_note(const struct nb_exception *exception) {
  if (noted == NULL) noted = exception;
}

const struct nb_exception *nb_noted_replace(const struct nb_exception *exception) {
  const struct nb_exception *before = noted;
  noted = exception;
  return before;
}

int nb_raise_noted(void) {
  const struct nb_exception *exception = nb_noted_replace(NULL);
  return exception != NULL ? nb_raise(exception) : 0;
}
