/* The functions of TVM FFI's C interface (c_api.h, c_env_api.h). */
#define _POSIX_C_SOURCE 200809L /* stpcpy */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/embedder.h"
#include "abi/raised.h"
#include "abi/tvm_ffi.h"
#include "library/context.h"
#include "library/provided.h"

int TVMFFIFunctionCall(void *function, const dso_any *args, int32_t num_args, dso_any *result) {
  dso_function_object *self = function;
  if (self == NULL || self->object.type_index != DSO_FUNCTION)
    return raised_format("TypeError", "call: expected a function, found %s",
                         self == NULL ? "NULL" : "another object");
  return self->safe_call(self, args, num_args, result);
}

void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  raised_set(kind, message);
}

void TVMFFIErrorSetRaisedFromCStrParts(const char *kind, const char **parts, int32_t num_parts) {
  size_t nbytes = 1;
  for (int32_t i = 0; i < num_parts; i++) nbytes += parts[i] != NULL ? strlen(parts[i]) : 0;
  char *message = heap_new_zeroed(nbytes, 1), *end = message;
  for (int32_t i = 0; i < num_parts && message != NULL; i++)
    if (parts[i] != NULL) end = stpcpy(end, parts[i]);
  raised_set(kind, message);
  free(message);
}

static int refuse_context(const void *pointer, const char *name) {
  return raised_format(
      "RuntimeError", "look-up of '%s': library context, expected one of an open library, found %s",
      name, pointer == NULL ? "NULL" : "an unknown pointer");
}

/* An unknown context may be a module of a real tvm_ffi that opened the same file later. */
static int look_up_elsewhere(void *pointer, const char *name, void **function) {
  int status;
  if (pointer != NULL && tvm_ffi_look_up(pointer, name, function, &status)) return status;
  return refuse_context(pointer, name);
}

int TVMFFIEnvModLookupFromImports(void *pointer, const char *name, void **function) {
  struct context *context = context_of(pointer);
  if (name == NULL) return raised_format("TypeError", "look-up: expected a name, found NULL");
  if (context == NULL) return look_up_elsewhere(pointer, name, function);
  *function = import_cache_get(&context->import_cache, name);
  if (*function == NULL) *function = embedder.find_import(context, name);
  return *function != NULL ? 0 : -1;
}
