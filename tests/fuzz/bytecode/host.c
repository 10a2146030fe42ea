/* The host functions that programs call. */
#include "abi/object.h"
#include "program.h"
#include "abi/raised.h"

enum { MOST_CALLS = 100 };

static int num_calls;

void host_begin_run(void) { num_calls = 0; }

/* A program whose calls multiply ends here. */
static int begin_call(const dso_any *args, int32_t num_args) {
  if (++num_calls > MOST_CALLS) return raised_format("RuntimeError", "enough calls");
  for (int32_t i = 0; i < num_args; i++) touch(&args[i]);
  return 0;
}

/* Returns its first argument, unless that is borrowed. */
static int echo(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle;
  if (begin_call(args, num_args) != 0) return -1;
  if (num_args == 0 || args->type_index == DSO_DLTENSOR_PTR) return 0;
  any_retain(args);
  *result = *args;
  return 0;
}

static int minus_one(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle;
  if (num_args != 1 || args->type_index != DSO_INT)
    return raised_format("TypeError", "minus_one: expected an int");
  *result = (dso_any){.type_index = DSO_INT, .v_int64 = args->v_int64 - 1};
  return 0;
}

/* Calls its first argument from outside the machine. */
static int call(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle;
  if (begin_call(args, num_args) != 0) return -1;
  if (num_args == 0 || args->type_index != DSO_FUNCTION)
    return raised_format("TypeError", "call: expected a function");
  dso_function_object *function = args->v_ptr;
  return function->safe_call(function, args + 1, num_args - 1, result);
}

/* Returns a borrowed value, which the machine refuses. */
static int lend(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  static DLTensor tensor;
  (void)handle, (void)args, (void)num_args;
  *result = (dso_any){.type_index = DSO_DLTENSOR_PTR, .v_ptr = &tensor};
  return 0;
}

static int fail(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle, (void)args, (void)num_args, (void)result;
  return raised_format("ValueError", "fail was called");
}

#define FUNCTION(name)                                                                      \
  {                                                                                         \
    .object = {.combined_ref_count = OBJECT_ONE, .type_index = DSO_FUNCTION}, .safe_call = name \
  }
static dso_function_object functions[] = {FUNCTION(echo), FUNCTION(minus_one), FUNCTION(call),
                                          FUNCTION(lend), FUNCTION(fail)};

const char *const host_names[] = {"echo", "minus_one", "call", "lend", "fail", NULL};
dso_function_object *const host_functions[] = {&functions[0], &functions[1], &functions[2],
                                               &functions[3], &functions[4]};
