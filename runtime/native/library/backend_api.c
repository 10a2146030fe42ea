/* The functions of TVM's C interface until 2025 (c_runtime_api.h, c_backend_api.h). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "library/provided.h"
#include "library/thread_result.h"
#include "threads/workspace.h"

enum { STACK_ARGS = 16 };

/* ---- Errors: "ValueError: text" is a kind and a message; text without a kind is a RuntimeError */

static size_t length_of_kind(const char *text) {
  size_t length = 0;
  while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
  return length > 0 && !isdigit((unsigned char)text[0]) && strncmp(text + length, ": ", 2) == 0
             ? length
             : 0;
}

void TVMAPISetLastError(const char *text) {
  char kind[64];
  size_t length = text != NULL ? length_of_kind(text) : 0;
  if (length == 0 || length >= sizeof kind) {
    raised_set("RuntimeError", text);
    return;
  }
  memcpy(kind, text, length);
  kind[length] = '\0';
  raised_set(kind, text + length + 2);
}

const char *TVMGetLastError(void) {
  static _Thread_local char text[2048]; /* longer texts are truncated */
  const char *kind, *message;
  if (!raised_look(&kind, &message)) return "";
  snprintf(text, sizeof text, "%s: %s", kind, message);
  return text;
}

/* ---- Calls */

static int call_with(void *function, const packed_value *values, const int *codes, int num_args,
                     dso_any *args, dso_any *result) {
  for (int i = 0; i < num_args; i++)
    if (packed_to_any(values[i], codes[i], i, &args[i]) != 0) return -1;
  return TVMFFIFunctionCall(function, args, num_args, result);
}

static int call_with_heap(void *function, const packed_value *values, const int *codes,
                          int num_args, dso_any *result) {
  dso_any *args = heap_new_zeroed((size_t)num_args, sizeof *args);
  if (args == NULL)
    return raised_format("OutOfMemoryError", "no memory for %d arguments", num_args);
  int status = call_with(function, values, codes, num_args, args, result);
  free(args);
  return status;
}

int TVMFuncCall(void *function, packed_value *args, int *type_codes, int num_args,
                packed_value *result, int *result_code) {
  dso_any stack[STACK_ARGS], value = {.type_index = DSO_NONE};
  int status = num_args <= STACK_ARGS
                   ? call_with(function, args, type_codes, num_args, stack, &value)
                   : call_with_heap(function, args, type_codes, num_args, &value);
  if (status == 0) thread_result_store(&value, result, result_code);
  return status;
}

int TVMBackendGetFuncFromEnv(void *context, const char *name, void **function) {
  return TVMFFIEnvModLookupFromImports(context, name, function);
}

/* ---- TVM's names for functions of threads/ */

void *TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int code,
                               int bits) {
  return workspace_alloc(device_type, device_id, nbytes, code, bits);
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void *data) {
  return workspace_free(device_type, device_id, data);
}

int TVMBackendParallelLaunch(dso_parallel_task task, void *data, int num_task) {
  return parallel_launch(task, data, num_task);
}

int TVMBackendParallelBarrier(int task_id, struct parallel_group_env *env) {
  return parallel_barrier(task_id, env);
}
