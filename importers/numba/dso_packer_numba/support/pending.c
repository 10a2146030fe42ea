/* Exceptions of kernels. */
#include "pending.h"

#include <stddef.h>

static _Thread_local const struct nb_error *pending;

void nb_note(const struct nb_error *error) {
  if (pending == NULL) pending = error;
}

const struct nb_error *nb_pending_replace(const struct nb_error *error) {
  const struct nb_error *before = pending;
  pending = error;
  return before;
}
