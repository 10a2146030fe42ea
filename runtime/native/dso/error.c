/* The error of this thread, as text. */
#include "abi/raised.h"
#include "abi/tvm_ffi.h"
#include "dso.h"

/* The core stores each of its errors in the slot of a real tvm_ffi as well. So an error in that slot
 * is the latest: a library that tvm_ffi opened first raises its errors there only. */
static void take_foreign(void) {
  dso_object *error = tvm_ffi_take_error();
  if (error == NULL) return;
  const tvm_ffi_error_cell *cell = tvm_ffi_error(error);
  raised_adopt(cell->kind.data, (size_t)cell->kind.size, cell->message.data,
               (size_t)cell->message.size);
  dso_object_release(error);
}

const char *dso_last_error(void) {
  take_foreign();
  return raised_shown();
}

const char *dso_last_error_kind(void) {
  const char *kind, *message;
  take_foreign();
  return raised_look(&kind, &message) ? kind : "";
}

int dso_set_error(const char *kind, const char *message) {
  raised_set(kind, message);
  return -1;
}
