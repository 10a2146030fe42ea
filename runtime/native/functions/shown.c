/* Values as text. */
#include "functions/shown.h"

#include <inttypes.h>

#include "device/device_api.h"
#include "functions/shown_number.h"
#include "abi/dtype_name.h"
#include "vm/builtin.h"

enum { MOST_NESTED = 64, MOST_TEXT = 1 << 20 };

static void add(struct text *text, const char *added) { text_add(text, added, strlen(added)); }

static void add_shape(struct text *text, const dso_shape_object *shape) {
  add(text, "(");
  for (size_t i = 0; i < shape->ndim; i++)
    text_format(text, i > 0 ? ", %" PRId64 : "%" PRId64, shape->dims[i]);
  add(text, shape->ndim == 1 ? ",)" : ")");
}

static int add_tensor(struct text *text, const dso_any *value) {
  struct array array;
  dso_object *copy;
  if (fetch_array("print", value, 0, &array, &copy) != 0) return -1;
  shown_array(text, &array);
  if (copy != NULL) object_release(copy);
  return 0;
}

static void add_device(struct text *text, DLDevice device) {
  const char *kind = device_kind_name(device.device_type);
  text_format(text, "%s:%d", kind != NULL ? kind : "device", (int)device.device_id);
}

static int add_value(struct text *text, const dso_any *value, int depth);

/* NOLINTNEXTLINE(misc-no-recursion) at most MOST_NESTED levels */
static int add_items(struct text *text, const dso_array_object *array, int depth) {
  int status = 0;
  add(text, "(");
  for (int64_t i = 0; i < array->size && status == 0 && text->size < MOST_TEXT; i++) {
    if (i > 0) add(text, ", ");
    status = add_value(text, &array->items[i], depth + 1);
  }
  add(text, ")");
  return status;
}

/* NOLINTNEXTLINE(misc-no-recursion) */
static int add_value(struct text *text, const dso_any *value, int depth) {
  char number[SHOWN_SIZE], name[DTYPE_NAME_SIZE];
  struct span span;
  switch (value->type_index) {
    case DSO_NONE: add(text, "None"); return 0;
    case DSO_INT: text_format(text, "%" PRId64, value->v_int64); return 0;
    case DSO_BOOL: add(text, value->v_int64 ? "True" : "False"); return 0;
    case DSO_FLOAT: add(text, show_real(value->v_float64, sizeof(double), number)); return 0;
    case DSO_DATA_TYPE: add(text, dtype_name(value->v_dtype, name)); return 0;
    case DSO_DEVICE: add_device(text, value->v_device); return 0;
    case DSO_TENSOR:
    case DSO_DLTENSOR_PTR: return add_tensor(text, value);
    case DSO_SHAPE: add_shape(text, value->v_ptr); return 0;
    case DSO_ARRAY:
      if (depth == MOST_NESTED) add(text, "(...)");
      return depth == MOST_NESTED ? 0 : add_items(text, value->v_ptr, depth);
    case DSO_RAW_STR:
    case DSO_SMALL_STR:
    case DSO_STR:
      if (value_text("print", value, 0, &span) != 0) return -1;
      text_add(text, span.data, span.size);
      return 0;
    default: text_format(text, "<%s>", vm_type_name(value)); return 0;
  }
}

int shown_value(struct text *text, const dso_any *value) { return add_value(text, value, 0); }
