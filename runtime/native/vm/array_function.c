/* `ffi.Array`: wrappers of declared functions call it to return several results. */
#include "vm/array_function.h"

#include <string.h>

#include "abi/raised.h"
#include "vm/object.h"

static int own_text(dso_any *item, int is_str, const char *data, size_t nbytes) {
  if (object_make_string(item, is_str, data, nbytes) == 0) return 0;
  return raised_format("OutOfMemoryError", "ffi.Array: no memory for a string");
}

/* Make the item own its data. A tensor by pointer is borrowed from the caller. */
static int own_item(dso_any *item, int32_t index) {
  const dso_byte_array *bytes = item->v_ptr;
  switch (item->type_index) {
    case DSO_RAW_STR: return own_text(item, 1, item->v_c_str, strlen(item->v_c_str));
    case DSO_BYTE_ARRAY_PTR: return own_text(item, 0, bytes->data, (size_t)bytes->size);
    case DSO_DLTENSOR_PTR:
    case DSO_RVALUE_REF:
      *item = (dso_any){.type_index = DSO_NONE};
      return raised_format("TypeError",
                           "ffi.Array: argument %d: expected a value that owns its "
                           "data, found a borrowed one",
                           index + 1);
    default: any_retain(item); return 0;
  }
}

static int call(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  (void)handle;
  if (num_args < 0)
    return raised_format("TypeError", "ffi.Array: expected at least 0 arguments, found %d",
                         num_args);
  dso_array_object *array = array_object_new(num_args);
  if (array == NULL) return -1;
  for (int32_t i = 0; i < num_args; i++) {
    dso_any item = args[i];
    if (item.type_index == DSO_RAW_STR && item.v_c_str == NULL) item.type_index = DSO_NONE;
    if (own_item(&item, i) != 0) {
      object_release(&array->object);
      return -1;
    }
    array->items[i] = item;
  }
  *result = any_of_object(array);
  return 0;
}

/* Static: its one strong reference is never dropped. */
dso_function_object array_function = {
    .object = {.combined_ref_count = ((uint64_t)1 << 32) + 1, .type_index = DSO_FUNCTION},
    .safe_call = call,
};
