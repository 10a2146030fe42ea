/* Arguments of the functions of module types. */
#include "types/values.h"

#include <string.h>

#include "abi/raised.h"
#include "vm/builtin.h"

static int refuse(const char *function, const dso_any *args, int32_t index, const char *expected) {
  return raised_format("TypeError", "%s: argument %d, expected %s, found %s", function,
                       (int)index + 1, expected, vm_type_name(&args[index]));
}

int value_text(const char *function, const dso_any *args, int32_t index, struct span *text) {
  const dso_any *value = &args[index];
  const dso_byte_array *bytes;
  switch (value->type_index) {
    case DSO_RAW_STR:
      if (value->v_c_str == NULL) break;
      *text = (struct span){value->v_c_str, strlen(value->v_c_str)};
      return 0;
    case DSO_SMALL_STR:
      if (value->small_len >= sizeof value->v_bytes) break;
      *text = (struct span){value->v_bytes, value->small_len};
      return 0;
    case DSO_STR:
      bytes = (const dso_byte_array *)((const dso_object *)value->v_ptr + 1);
      *text = (struct span){bytes->data, (size_t)bytes->size};
      return 0;
    default: break;
  }
  return refuse(function, args, index, "str");
}

int value_int(const char *function, const dso_any *args, int32_t index, int64_t *number) {
  if (args[index].type_index != DSO_INT && args[index].type_index != DSO_BOOL)
    return refuse(function, args, index, "int");
  *number = args[index].v_int64;
  return 0;
}

int value_count(const char *function, int32_t num_args, int32_t least, int32_t most) {
  if (num_args >= least && num_args <= most) return 0;
  if (most == INT32_MAX)
    return raised_format("TypeError", "%s: expected at least %d arguments, found %d", function,
                         (int)least, (int)num_args);
  return raised_format("TypeError", "%s: expected %d arguments, found %d", function, (int)least,
                       (int)num_args);
}
