/* Device modules as modules: their functions are kernels (device/kernel.h). */
#include <stdlib.h>
#include <string.h>

#include "abi/dtype_name.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "device/current_device.h"
#include "types/device/device_module.h"
#include "types/families.h"

/* ---- Names that C code gets: a NUL would cut them */

static int refuse_name(const struct kernel_row *row) {
  struct text text = {0};
  text_add(&text, "kernel ", 7);
  text_repr(&text, row->key.data, row->key.size);
  text_add(&text, " of format ", 11);
  text_repr(&text, row->module->fmt.data, row->module->fmt.size);
  int status = raised_format(
      "DeviceError", "%s: embedded null character, expected names of plain text", text_of(&text));
  text_free(&text);
  return status;
}

/* A copy with a NUL after it; NULL with an error raised. */
static char *copy_name(const struct kernel_row *row, struct span name) {
  if (name.size > 0 && memchr(name.data, '\0', name.size) != NULL) {
    (void)refuse_name(row);
    return NULL;
  }
  char *copy = heap_new(name.size + 1);
  if (copy == NULL) return raised_null("OutOfMemoryError", "no memory for the name of a kernel");
  if (name.size > 0) memcpy(copy, name.data, name.size);
  copy[name.size] = '\0';
  return copy;
}

/* ---- The code of the module */

/* Of two threads that make it, the first stores it. */
static struct kernel_module *code_of(struct kernel_row *row) {
  struct device_module *self = row->module;
  struct kernel_module *code = atomic_load(&self->code);
  if (code != NULL) return code;
  char *fmt = copy_name(row, self->fmt);
  if (fmt == NULL) return NULL;
  struct kernel_module *made =
      kernel_module_new(self->driver, fmt, self->data.data, self->data.size);
  free(fmt);
  if (made == NULL) return raised_null("OutOfMemoryError", "no memory for a module of kernels");
  if (atomic_compare_exchange_strong(&self->code, &code, made)) return made;
  kernel_module_release(made);
  return code;
}

/* ---- Kernels */

struct copies {
  DLDataType *types;
  char **tags;
};

static int copy_signature(const struct kernel_row *row, struct copies *copies) {
  copies->types = heap_new_zeroed(row->num_types + 1, sizeof *copies->types);
  copies->tags = heap_new_zeroed(row->num_tags + 1, sizeof *copies->tags);
  if (copies->types == NULL || copies->tags == NULL)
    return raised_format("OutOfMemoryError", "no memory for the signature of a kernel");
  if (row->num_types > 0) memcpy(copies->types, row->types, 4 * row->num_types);
  for (size_t i = 0; i < row->num_tags; i++)
    if ((copies->tags[i] = copy_name(row, row->tags[i])) == NULL) return -1;
  return 0;
}

static int set_signature(const struct kernel_row *row, struct kernel_signature *signature) {
  struct copies copies = {0};
  int status = copy_signature(row, &copies);
  if (status == 0)
    status = kernel_signature_set(signature, copies.types, (int)row->num_types,
                                  (const char *const *)copies.tags, (int)row->num_tags);
  for (size_t i = 0; copies.tags != NULL && i < row->num_tags; i++) free(copies.tags[i]);
  free(copies.types);
  free(copies.tags);
  return status;
}

static dso_function *make_kernel(struct kernel_row *row) {
  struct kernel_signature signature = {.device_type = row->module->driver->device_type};
  struct kernel_module *code = code_of(row);
  if (code == NULL) return NULL;
  signature.code_name = copy_name(row, row->name);
  signature.name = signature.code_name != NULL ? copy_name(row, row->key) : NULL;
  if (signature.name == NULL || set_signature(row, &signature) != 0) {
    kernel_signature_clear(&signature);
    return NULL;
  }
  dso_object *kernel = kernel_new(code, &signature);
  if (kernel == NULL) raised_set("OutOfMemoryError", "no memory for a kernel");
  return (dso_function *)(void *)kernel;
}

static dso_function *kernel_of(struct kernel_row *row) {
  dso_function *kernel = atomic_load(&row->function);
  if (kernel != NULL) return kernel;
  dso_function *made = make_kernel(row);
  if (made == NULL || atomic_compare_exchange_strong(&row->function, &kernel, made)) return made;
  object_release(&made->object);
  return kernel;
}

/* A kernel runs on the device of its tensors, or without any on the thread's current device. */
static int check_devices(const struct kernel_row *row, const dso_any *args, int32_t num_args) {
  int has_tensor = 0;
  for (int32_t i = 0; i < num_args; i++) {
    const DLTensor *tensor = dso_tensor_of(&args[i]);
    if (tensor == NULL) continue;
    has_tensor = 1;
    if (device_check_allowed(&row->module->module, tensor->device) != 0) return -1;
  }
  if (has_tensor) return 0;
  return device_check_allowed(&row->module->module,
                              current_device(row->module->driver->device_type));
}

static int call_kernel(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  struct kernel_row *row = handle;
  dso_function *kernel = atomic_load_explicit(&row->function, memory_order_acquire);
  if (check_devices(row, args, num_args) != 0) return -1;
  return kernel->safe_call(kernel, args, num_args, result);
}

static int find(dso_module *module, const char *name, dso_function **function) {
  struct device_module *self = (struct device_module *)module;
  size_t row = name_order_find(&self->order, name, strlen(name));
  if (row == NO_NAME || self->driver == NULL) return 0;
  if (kernel_of(&self->rows[row]) == NULL) return -1;
  *function = module_function_new(module, call_kernel, &self->rows[row]);
  return *function != NULL ? 1 : -1;
}

/* ---- Signatures: "void(handle arg0, int32 arg1, blockIdx.x)" */

static int is_note(struct span tag) {
  static const char note[] = "paramWriteAccess:";
  return tag.size >= sizeof note - 1 && memcmp(tag.data, note, sizeof note - 1) == 0;
}

static void add_signature(struct text *text, const struct kernel_row *row) {
  const char *before = "";
  text_add(text, "void(", 5);
  for (size_t i = 0; i < row->num_types; i++, before = ", ") {
    char type_name[DTYPE_NAME_SIZE];
    DLDataType type;
    memcpy(&type, row->types + 4 * i, sizeof type);
    text_format(text, "%s%s arg%zu", before, dtype_name(type, type_name), i);
  }
  for (size_t i = 0; i < row->num_tags; i++) {
    if (is_note(row->tags[i])) continue;
    text_format(text, "%s", before);
    text_add(text, row->tags[i].data, row->tags[i].size);
    before = ", ";
  }
  text_add(text, ")", 1);
}

static int visit_row(const struct kernel_row *row, dso_visit_function visit, void *context) {
  struct text name = {0}, signature = {0};
  text_add(&name, row->key.data, row->key.size);
  add_signature(&signature, row);
  int status = visit(context, text_of(&name), text_of(&signature));
  text_free(&name);
  text_free(&signature);
  return status;
}

static int visit_functions(dso_module *module, dso_visit_function visit, void *context) {
  const struct device_module *self = (struct device_module *)module;
  int status = 0;
  for (size_t i = 0; i < self->num_rows && status == 0; i++)
    if (kernel_row_counts(self, i)) status = visit_row(&self->rows[i], visit, context);
  return status;
}

/* ---- The module */

static void end(dso_module *module) {
  struct device_module *self = (struct device_module *)module;
  struct kernel_module *code = atomic_load(&self->code);
  for (size_t i = 0; i < self->num_rows; i++) {
    dso_function *kernel = atomic_load(&self->rows[i].function);
    if (kernel != NULL) object_release(&kernel->object);
  }
  if (code != NULL) {
    kernel_module_forget(code);
    kernel_module_release(code);
  }
  device_payload_clear(self);
}

static const struct module_type device_type = {
    .find = find,
    .visit_functions = visit_functions,
    .end = end,
};

int load_device(struct reader *reader, struct span type_key, dso_module **module) {
  static const struct span alias = {"hsaco", 5}, hip = {"hip", 3};
  int is_alias = type_key.size == alias.size && memcmp(type_key.data, alias.data, alias.size) == 0;
  struct device_module *self =
      module_new(&device_type, is_alias ? hip : type_key, sizeof *self, reader->owner);
  if (self == NULL) return -1;
  self->driver = kernel_driver(self->module.type_key);
  return module_give(&self->module, device_payload_read(self, reader), module);
}
