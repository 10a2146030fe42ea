/* The built-in functions that check arguments and results. The compiler passes a text to each,
 * "ErrorContext(fn=main, loc=param[0], ...) ", with which the message begins. */
#include <inttypes.h>
#include <stdio.h>

#include "abi/raised.h"
#include "vm/builtin.h"

const char *vm_context(const dso_any *value, char *text) {
  const char *data;
  size_t size;
  if (!vm_read_text(value, &data, &size)) size = 0;
  while (size > 0 && data[size - 1] == ' ') size--;
  if (size > VM_CONTEXT_SIZE - 3) size = VM_CONTEXT_SIZE - 3;
  memcpy(text, data, size);
  memcpy(text + size, size > 0 ? ": " : "", size > 0 ? 3 : 1);
  return text;
}

static int refuse(const dso_any *context, const char *expected, const dso_any *found) {
  char text[VM_CONTEXT_SIZE];
  return raised_format("TypeError", "%sexpected %s, found %s", vm_context(context, text), expected,
                       vm_type_name(found));
}

static const char *dtype_text(DLDataType dtype, char *text, size_t size) {
  static const char *const names[] = {"int",    "uint",    "float", "handle",
                                      "bfloat", "complex", "bool"};
  if (dtype.code > 6) snprintf(text, size, "type code %d, %d bits", dtype.code, dtype.bits);
  else if (dtype.code == 6 && dtype.bits == 8) snprintf(text, size, "bool");
  else snprintf(text, size, "%s%d", names[dtype.code], dtype.bits);
  if (dtype.lanes != 1) snprintf(text + strlen(text), size - strlen(text), "x%d", dtype.lanes);
  return text;
}

static int same_dtype(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

static int refuse_dtype(const dso_any *context, DLDataType expected, DLDataType found) {
  char text[VM_CONTEXT_SIZE], wanted[40], had[40];
  return raised_format("TypeError", "%sdtype, expected %s, found %s", vm_context(context, text),
                       dtype_text(expected, wanted, sizeof wanted),
                       dtype_text(found, had, sizeof had));
}

/* Value, number of dimensions or -1, data type if it is known, context. */
VM_BUILTIN(vm_check_tensor_info) {
  const DLTensor *tensor = dso_tensor_of(&args[0]);
  const dso_any *context = &args[num_args - 1];
  char text[VM_CONTEXT_SIZE];
  (void)run, (void)result;
  if (args[1].type_index != DSO_INT)
    return vm_refuse_argument("check_tensor_info", 1, "int", &args[1]);
  if (num_args == 4 && args[2].type_index != DSO_DATA_TYPE)
    return vm_refuse_argument("check_tensor_info", 2, "a dtype", &args[2]);
  if (tensor == NULL) return refuse(context, "a tensor", &args[0]);
  if (args[1].v_int64 != -1 && args[1].v_int64 != tensor->ndim)
    return raised_format("ValueError", "%s%d dimensions, expected %" PRId64,
                         vm_context(context, text), (int)tensor->ndim, args[1].v_int64);
  if (num_args == 4 && !same_dtype(args[2].v_dtype, tensor->dtype))
    return refuse_dtype(context, args[2].v_dtype, tensor->dtype);
  return 0;
}

/* Value, number of dimensions or -1, context. */
VM_BUILTIN(vm_check_shape_info) {
  struct vm_dims dims;
  char text[VM_CONTEXT_SIZE];
  (void)run, (void)num_args, (void)result;
  if (args[1].type_index != DSO_INT)
    return vm_refuse_argument("check_shape_info", 1, "int", &args[1]);
  if (args[0].type_index != DSO_SHAPE && args[0].type_index != DSO_ARRAY)
    return refuse(&args[2], "a shape", &args[0]);
  if (vm_read_dims("check_shape_info", 0, &args[0], &dims) != 0) return -1;
  if (args[1].v_int64 == -1 || args[1].v_int64 == dims.ndim) return 0;
  return raised_format("ValueError", "%s%" PRId64 " extents, expected %" PRId64,
                       vm_context(&args[2], text), dims.ndim, args[1].v_int64);
}

/* Value, data type, context. */
VM_BUILTIN(vm_check_prim_value_info) {
  static const char *const expected[] = {"int", "int", "float"};
  int32_t found = args[0].type_index;
  (void)run, (void)num_args, (void)result;
  if (args[1].type_index != DSO_DATA_TYPE)
    return vm_refuse_argument("check_prim_value_info", 1, "a dtype", &args[1]);
  DLDataType dtype = args[1].v_dtype;
  if (dtype.code == 6) return found == DSO_BOOL ? 0 : refuse(&args[2], "bool", &args[0]);
  if (dtype.code > 2) return 0;
  if (dtype.code == 2 ? found == DSO_FLOAT || found == DSO_INT : found == DSO_INT) return 0;
  return refuse(&args[2], expected[dtype.code], &args[0]);
}

/* Value, number of items or -1, context. */
VM_BUILTIN(vm_check_tuple_info) {
  const dso_array_object *array = args[0].v_ptr;
  char text[VM_CONTEXT_SIZE];
  (void)run, (void)num_args, (void)result;
  if (args[1].type_index != DSO_INT)
    return vm_refuse_argument("check_tuple_info", 1, "int", &args[1]);
  if (args[0].type_index != DSO_ARRAY) return refuse(&args[2], "a tuple", &args[0]);
  if (args[1].v_int64 == -1 || args[1].v_int64 == array->size) return 0;
  return raised_format("ValueError", "%sa tuple of %" PRId64 ", expected %" PRId64,
                       vm_context(&args[2], text), array->size, args[1].v_int64);
}

VM_BUILTIN(vm_check_func_info) {
  (void)run, (void)num_args, (void)result;
  return args[0].type_index == DSO_FUNCTION ? 0 : refuse(&args[1], "a function", &args[0]);
}

VM_BUILTIN(vm_check_string_info) {
  int32_t found = args[0].type_index;
  (void)run, (void)num_args, (void)result;
  return found == DSO_STR || found == DSO_SMALL_STR ? 0 : refuse(&args[1], "str", &args[0]);
}
