/* dso_typed.h: what the headers that `packer c-header` writes have in common. C99 and C++11. */
#ifndef DSO_TYPED_H
#define DSO_TYPED_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "dso.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arguments. NULL becomes None. ---- */

static inline dso_any dso_typed_unsigned(uint64_t integer) {
  dso_any value = dso_int((int64_t)integer);
  if (integer > INT64_MAX) value.small_len = DSO_UNSIGNED;
  return value;
}

static inline dso_any dso_typed_string(const char *text) {
  return text ? dso_string(text) : dso_none();
}

static inline dso_any dso_typed_pointer(const void *pointer) {
  return pointer ? dso_pointer((void *)pointer) : dso_none();
}

static inline dso_any dso_typed_tensor(DLTensor *tensor) {
  return tensor ? dso_tensor(tensor) : dso_none();
}

static inline dso_any dso_typed_function(dso_function *function) {
  return function ? dso_object_value(&function->object) : dso_none();
}

/* ---- Results. A value of another type is released. ---- */

static inline int dso_typed_wrong(dso_any *value, const char *message) {
  dso_release(value);
  return dso_set_error("TypeError", message);
}

static inline int dso_typed_int(dso_any *value, int64_t *integer) {
  if (value->type_index != DSO_INT && value->type_index != DSO_BOOL)
    return dso_typed_wrong(value, "result: expected an integer");
  *integer = value->v_int64;
  return 0;
}

static inline int dso_typed_float(dso_any *value, double *number) {
  if (value->type_index != DSO_FLOAT) return dso_typed_wrong(value, "result: expected a float");
  *number = value->v_float64;
  return 0;
}

static inline int dso_typed_address(dso_any *value, void **pointer) {
  if (value->type_index != DSO_OPAQUE_PTR && value->type_index != DSO_NONE)
    return dso_typed_wrong(value, "result: expected a pointer");
  *pointer = value->type_index == DSO_NONE ? NULL : value->v_ptr;
  return 0;
}

/* ---- The functions of a library ---- */

typedef struct {
  const char *name, *type; /* "add", "int64_t(int64_t a, int64_t b)" */
} dso_typed_declaration;

typedef struct {
  const dso_typed_declaration *declared;
  size_t count;
} dso_typed_list;

static inline int dso_typed_refuse(const char *name, const char *type) {
  char text[1024]; /* longer texts are truncated */
  snprintf(text, sizeof text,
           "%s: another type than its header declares; write the header again: packer c-header; "
           "found %s",
           name, type);
  return dso_set_error("TypeError", text);
}

/* Raise an error if the function of the library has another type than the header says. */
static inline int dso_typed_compare(void *context, const char *name, const char *type) {
  const dso_typed_list *list = (const dso_typed_list *)context;
  for (size_t i = 0; type && i < list->count; i++)
    if (!strcmp(list->declared[i].name, name))
      return strcmp(list->declared[i].type, type) ? dso_typed_refuse(name, type) : 0;
  return 0;
}

static inline void dso_typed_close(dso_module **module, dso_function **functions, size_t count) {
  for (size_t i = 0; i < count; i++) dso_function_release(functions[i]);
  memset(functions, 0, count * sizeof *functions);
  dso_module_release(*module);
  *module = NULL;
}

/* Load a library, and hold the functions that the header declares. */
static inline int dso_typed_open(dso_module **module, dso_function **functions,
                                 const dso_typed_declaration *declared, size_t count,
                                 const char *path, const dso_options *options) {
  dso_typed_list list = {declared, count};
  int status = -1;
  memset(functions, 0, count * sizeof *functions);
  *module = dso_load(path, options);
  if (!*module) return -1;
  status = dso_module_functions(*module, dso_typed_compare, &list);
  for (size_t i = 0; !status && i < count; i++)
    if (!(functions[i] = dso_module_function(*module, declared[i].name))) status = -1;
  if (!status) return 0;
  dso_typed_close(module, functions, count);
  return -1;
}

#ifdef __cplusplus
}
#endif

#endif
