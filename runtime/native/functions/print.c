/* relax.run.print and assert_op, vm.builtin.debug_print and invoke_debug_func. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/dtype_name.h"
#include "abi/heap.h"
#include "abi/embedder.h"
#include "abi/raised.h"
#include "functions/format.h"
#include "functions/global_functions.h"
#include "functions/shown.h"
#include "vm/vm.h"

static const char NO_MEMORY[] = "no memory for a text";

/* Append the values, with `between` between two of them. */
static int add_all(struct text *text, const dso_any *values, int32_t count, const char *between) {
  for (int32_t i = 0; i < count; i++) {
    if (i > 0) text_add(text, between, strlen(between));
    if (shown_value(text, &values[i]) != 0) return -1;
  }
  return 0;
}

/* Print a text and a line end, and free it. */
static int print_line(struct text *text) {
  text_add(text, "\n", 1);
  int status = text->is_broken ? raised_format("OutOfMemoryError", "%s", NO_MEMORY)
                               : embedder.print(text_of(text), text->size);
  text_free(text);
  return status;
}

/* A format, and the values for it; an empty format shows all of them. */
GLOBAL_FUNCTION(global_print) {
  static const char function[] = "relax.run.print";
  struct text text = {0};
  struct span format;
  (void)handle, (void)result;
  if (value_count(function, num_args, 1, INT32_MAX) != 0 ||
      value_text(function, args, 0, &format) != 0)
    return -1;
  int status = format.size > 0 ? format_values(&text, function, format, args + 1, num_args - 1)
                               : add_all(&text, args + 1, num_args - 1, " ");
  if (status == 0) return print_line(&text);
  text_free(&text);
  return -1;
}

/* ---- assert_op: a condition, a format and the values for it */

static int take_condition(const char *function, const dso_any *args, int64_t *condition) {
  struct array array;
  dso_object *copy;
  if (dso_tensor_of(&args[0]) == NULL) return value_int(function, args, 0, condition);
  if (fetch_array(function, args, 0, &array, &copy) != 0) return -1;
  int status = 0;
  if (!dtype_is(array.tensor->dtype, DTYPE_BOOL, 8))
    status = refuse_dtype(function, 0, "a tensor of bool", array.tensor->dtype);
  else if (array.tensor->ndim != 0)
    status = raised_format("ValueError", "%s: the condition has %d dimensions, expected a scalar",
                           function, (int)array.tensor->ndim);
  else *condition = *array.data != 0;
  if (copy != NULL) object_release(copy);
  return status;
}

GLOBAL_FUNCTION(global_assert_op) {
  static const char function[] = "relax.run.assert_op";
  struct text text = {0};
  struct span format;
  int64_t condition = 0;
  (void)handle, (void)result;
  if (value_count(function, num_args, 2, INT32_MAX) != 0 ||
      value_text(function, args, 1, &format) != 0 ||
      take_condition(function, args, &condition) != 0)
    return -1;
  if (condition) return 0;
  int status = format.size > 0 ? format_values(&text, function, format, args + 2, num_args - 2)
                               : add_all(&text, args + 2, num_args - 2, ", ");
  if (status == 0)
    status = raised_format("AssertionError", "%s",
                           format.size > 0 || num_args > 2 ? text_of(&text) : "Assertion Failed");
  text_free(&text);
  return status;
}

/* ---- Debugging of models: the place in the source, and what to show */

GLOBAL_FUNCTION(global_debug_print) {
  static const char function[] = "vm.builtin.debug_print";
  struct text text = {0};
  struct span place;
  struct array array;
  dso_object *copy;
  char name[DTYPE_NAME_SIZE];
  (void)handle, (void)result;
  if (value_count(function, num_args, 2, 2) != 0 || value_text(function, args, 0, &place) != 0 ||
      fetch_array(function, args, 1, &array, &copy) != 0)
    return -1;
  const DLTensor *tensor = array.tensor;
  text_add(&text, place.data, place.size);
  text_format(&text, ": shape = (");
  for (int32_t i = 0; i < tensor->ndim; i++)
    text_format(&text, i > 0 ? ", %" PRId64 : "%" PRId64, tensor->shape[i]);
  text_format(&text, "%s), dtype = %s, data =\n", tensor->ndim == 1 ? "," : "",
              dtype_name(tensor->dtype, name));
  shown_array(&text, &array);
  if (copy != NULL) object_release(copy);
  return print_line(&text);
}

/* None, the name of a global function, the place, and further arguments. */
GLOBAL_FUNCTION(global_invoke_debug_func) {
  static const char function[] = "vm.builtin.invoke_debug_func";
  struct span name;
  (void)handle;
  if (value_count(function, num_args, 3, INT32_MAX) != 0 ||
      value_text(function, args, 1, &name) != 0)
    return -1;
  char *text = heap_format("%.*s", (int)(name.size < 1024 ? name.size : 1024), name.data);
  if (text == NULL) return raised_format("OutOfMemoryError", "%s", NO_MEMORY);
  dso_function_object *called = embedder.find_global(text);
  free(text);
  if (called == NULL) return -1;
  int status = vm_call_function(called, args + 2, num_args - 2, result);
  object_release(&called->object);
  any_release(result);
  *result = (dso_any){.type_index = DSO_NONE};
  return status;
}
