/* The node of a library's host code: its functions, their names and signatures, the entry. */
#include "module/library.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "device/tensor_object.h"
#include "library/left_out.h"
#include "library/packed.h"
#include "module/embedder.h"
#include "module/names.h"

struct library_module {
  dso_module module;
  struct context *bound; /* the context that refers to the module; or NULL */
  char *entry;           /* read at the first request; or NULL */
};

/* ---- Functions */

/* A bare DLTensor does not say whether its memory can be written. Weights are in the memory of a
 * library, usually of the called one. */
static int is_read_only(const struct origin *origin, const dso_any *value) {
  if (tensor_value_is_readonly(value)) return 1;
  if (value->type_index != DSO_DLTENSOR_PTR || origin->type->is_read_only == NULL) return 0;
  const DLTensor *tensor = value->v_ptr;
  return tensor != NULL && tensor->device.device_type == DLPACK_CPU &&
         origin->type->is_read_only(origin, (const char *)tensor->data + tensor->byte_offset);
}

static int32_t find_read_only(const struct host_function *self, const dso_any *args,
                              int32_t num_args) {
  const struct facts *facts = &self->found.facts;
  int32_t end = facts->end_written < num_args ? facts->end_written : num_args;
  for (int32_t i = facts->first_written; i < end; i++)
    if (facts->params[i].code[0] == '*' && is_read_only(self->origin, &args[i])) return i;
  return -1;
}

dso_safe_call library_code_of(const struct host_function *function) {
  dso_safe_call code;
  memcpy(&code, &function->found.code, sizeof code); /* ISO C has no cast from data to function */
  return function->found.is_packed ? NULL : code;
}

/* A function that writes to its arguments: weights of a library are read-only memory. */
static int call_writing(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct host_function *self = handle;
  int32_t wrong = find_read_only(self, args, num_args);
  if (wrong >= 0)
    return raised_format("ValueError",
                         "%s: argument %d '%s': expected a writable tensor, found a read-only one",
                         self->name, (int)wrong + 1, self->found.facts.params[wrong].name);
  return library_code_of(self)(NULL, args, num_args, result);
}

static int call_packed(void *handle, const dso_any *args, int32_t num_args, dso_any *result) {
  const struct host_function *self = handle;
  return packed_call((void *)(uintptr_t)self->found.code, args, num_args, result);
}

static int find(dso_module *self, const char *name, dso_function **function) {
  const struct host_function *found;
  int status = origin_function(origin_of(self), name, &found);
  if (status <= 0) return status;
  void *handle = (void *)(uintptr_t)found;
  if (found->found.is_packed) *function = module_function_new(self, call_packed, handle);
  else if (found->found.facts.end_written > 0)
    *function = module_function_new(self, call_writing, handle);
  else *function = module_function_of_code(self, library_code_of(found));
  return *function != NULL ? 1 : -1;
}

/* ---- Names */

struct listing {
  size_t start; /* the length of the prefix */
  struct names names;
};

/* Names that begin with "_" are not functions for users. */
static int list_symbol(void *arg, const char *symbol) {
  struct listing *self = arg;
  const char *name = symbol + self->start;
  return *name != '_' ? names_add(&self->names, name) : 0;
}

static int list_functions(const struct origin *origin, struct names *names) {
  static const char *const prefixes[] = {"__tvm_ffi_", "__packer_fn_"};
  struct listing listing = {.start = 0};
  int status = 0;
  for (size_t i = 0; i < 2 && status == 0; i++) {
    listing.start = strlen(prefixes[i]);
    status = origin->type->visit_symbols(origin, prefixes[i], list_symbol, &listing);
  }
  names_sort(&listing.names);
  *names = listing.names;
  return status;
}

/* Damaged facts raise an error when the function is looked up; here it has no signature. */
static const char *signature_of(struct origin *origin, const char *name) {
  const struct host_function *function;
  return origin_function(origin, name, &function) > 0 ? function->found.facts.type : NULL;
}

static int visit_functions(dso_module *self, dso_visit_function visit, void *context) {
  struct origin *origin = origin_of(self);
  struct names names;
  int status = list_functions(origin, &names);
  for (size_t i = 0; i < names.count && status == 0; i++)
    status = visit(context, names.items[i], signature_of(origin, names.items[i]));
  names_clear(&names);
  return status;
}

/* A record that cannot be read counts as none. */
static char *why_left_out(const struct origin *origin, const char *name) {
  const uint8_t *bytes;
  size_t nbytes;
  int status = origin->type->data(origin, LEFT_OUT_SYMBOL, &bytes, &nbytes);
  if (status < 0) raised_forget();
  return status > 0 ? left_out_hint(bytes, nbytes, name) : NULL;
}

static char *hint(dso_module *self, const char *name) {
  const struct origin *origin = origin_of(self);
  char *why = why_left_out(origin, name);
  if (why != NULL) return why;
  return origin->type->hint != NULL ? origin->type->hint(origin, name) : NULL;
}

/* ---- The entry: the text at __tvm_main__ */

static const char *refuse_entry(const struct origin *origin, const uint8_t *bytes, size_t nbytes) {
  struct text shown = {0};
  text_repr_bytes(&shown, (const char *)bytes, nbytes < 40 ? nbytes : 40);
  (void)raised_format("LibraryLoadError", "%s: __tvm_main__ holds %s, expected a function's name",
                      origin->path, text_of(&shown));
  text_free(&shown);
  return NULL;
}

static const char *entry(dso_module *module) {
  struct library_module *self = (struct library_module *)(void *)module;
  const struct origin *origin = origin_of(module);
  const uint8_t *bytes;
  size_t nbytes;
  char *known = __atomic_load_n(&self->entry, __ATOMIC_ACQUIRE);
  if (known != NULL || origin->type->data(origin, "__tvm_main__", &bytes, &nbytes) <= 0)
    return known;
  for (size_t i = 0; i < nbytes; i++)
    if (bytes[i] > 0x7f) return refuse_entry(origin, bytes, nbytes);
  char *made = heap_new_zeroed(1, nbytes + 1);
  if (made == NULL)
    return raised_null("OutOfMemoryError", "%s: no memory for a name", origin->path);
  memcpy(made, bytes, nbytes);
  if (__atomic_compare_exchange_n(&self->entry, &known, made, 0, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return made;
  free(made); /* another thread was first */
  return known;
}

/* ---- The node */

static void end(dso_module *module) {
  struct library_module *self = (struct library_module *)(void *)module;
  if (self->bound != NULL) embedder_unbind(self->bound, module);
  free(self->entry);
}

static const struct module_type type = {
    .find = find,
    .visit_functions = visit_functions,
    .entry = entry,
    .hint = hint,
    .end = end,
    .carries_imports = 1,
};

int is_library_module(const dso_module *module) { return module->type == &type; }

dso_module *library_module_new(struct origin *origin) {
  struct library_module *self =
      module_new(&type, (struct span){"library", 7}, sizeof *self, &origin->object);
  if (self == NULL) return NULL;
  if (origin->context == NULL || embedder_bind(origin->context, &self->module) == 0) {
    self->bound = origin->context;
    return &self->module;
  }
  module_release(&self->module);
  return NULL;
}
