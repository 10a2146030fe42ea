/* The error of this thread, as text. */
#include <string.h>

#include "abi/raised.h"
#include "abi/text.h"
#include "abi/tvm_ffi.h"
#include "dso.h"
#include "scan/utf8.h"

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

/* U+FFFD for each error of UTF-8, as Python's "replace". */
static void add_replaced(struct text *text, const char *bytes) {
  size_t nbytes = strlen(bytes);
  for (struct utf8_error error; utf8_check(bytes, nbytes, &error) != 0;) {
    text_add(text, bytes, error.start);
    text_add(text, "\xef\xbf\xbd", 3);
    bytes += error.end;
    nbytes -= error.end;
  }
  text_add(text, bytes, nbytes);
}

static int is_utf8(const char *text) {
  struct utf8_error error;
  return utf8_check(text, strlen(text), &error) == 0;
}

/* Replace an error that is not UTF-8, such as that of a damaged name of a file. */
static void make_utf8(void) {
  struct text new_kind = {0}, new_message = {0};
  const char *kind, *message;
  take_foreign();
  if (!raised_look(&kind, &message) || (is_utf8(kind) && is_utf8(message))) return;
  add_replaced(&new_kind, kind);
  add_replaced(&new_message, message);
  raised_reword(text_of(&new_kind), text_of(&new_message));
  text_free(&new_kind);
  text_free(&new_message);
}

const char *dso_last_error(void) {
  make_utf8();
  return raised_shown();
}

const char *dso_last_error_kind(void) {
  const char *kind, *message;
  make_utf8();
  return raised_look(&kind, &message) ? kind : "";
}

int dso_set_error(const char *kind, const char *message) {
  raised_set(kind, message);
  return -1;
}
