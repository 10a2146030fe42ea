/* Modules of types that the program registered (dso_register_loader). */
#include "types/user_type.h"

#include <string.h>

#include "abi/raised.h"

struct user_module {
  dso_module module;
  const dso_type *type;
  void *self; /* what the type's `load` stored */
  int is_loaded;
};

static struct user_module *user_of(dso_module *module) {
  return (struct user_module *)(void *)module;
}

/* ---- Functions. The program's functions do not retain the module, so they are wrapped. */

struct wrapped {
  dso_function_object function;
  dso_function *inner;
  dso_module *module;
};

static void delete_wrapped(void *object, int flags) {
  struct wrapped *self = object;
  if (flags & DSO_DELETE_STRONG) {
    dso_function_release(self->inner);
    module_release(self->module);
  }
  object_free(self, flags);
}

static int call_wrapped(void *object, const dso_any *args, int32_t num_args, dso_any *result) {
  dso_function *inner = ((struct wrapped *)object)->inner;
  return inner->safe_call(inner, args, num_args, result);
}

static dso_function *wrap(dso_module *module, dso_function *inner) {
  struct wrapped *self = object_new(sizeof *self, DSO_FUNCTION, delete_wrapped);
  if (self == NULL) {
    dso_function_release(inner);
    return raised_null("OutOfMemoryError", "no memory for a function");
  }
  self->function.safe_call = call_wrapped;
  self->inner = inner;
  self->module = module;
  module_retain(module);
  return &self->function;
}

static int refuse_answer(const struct user_module *self, const char *name) {
  return raised_format("RuntimeError", "the find function of '%s' failed for '%s'",
                       self->type->type_key, name);
}

static int find(dso_module *module, const char *name, dso_function **function) {
  struct user_module *self = user_of(module);
  dso_function *inner = NULL;
  uint64_t before = raised_at();
  int status = self->type->find != NULL ? self->type->find(self->self, name, &inner) : 0;
  if (status == 0) return 0;
  if (status < 0 && raised_at() != before) return -1;
  if (status < 0 || inner == NULL) return refuse_answer(self, name);
  *function = wrap(module, inner);
  return *function != NULL ? 1 : -1;
}

static void end(dso_module *module) {
  struct user_module *self = user_of(module);
  if (self->is_loaded && self->type->end != NULL) self->type->end(self->self);
}

static const struct module_type type = {.find = find, .end = end};

/* ---- The loader */

/* An error of one of our kinds is the loader's verdict on the bytes; any other is its failure. */
static int is_own_kind(const char *kind) {
  static const char *const kinds[] = {"BlobFormatError",     "BytecodeError",
                                      "LibraryLoadError",    "DeviceError",
                                      "OutOfMemoryError",    "FunctionNotFoundError",
                                      "LoaderNotFoundError", "ExportError",
                                      "ToolchainError",      "PackerError"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(kind, kinds[i]) == 0) return 1;
  return 0;
}

static int refuse(const struct reader *reader, size_t at, const dso_type *wanted, uint64_t before) {
  char *kind = NULL;
  const char *message = NULL;
  if (raised_at() == before || raised_take(0, &kind, &message) == 0)
    return reader_fail(reader, at, "the loader of '%s' failed", wanted->type_key);
  if (is_own_kind(kind)) raised_set(kind, message);
  else
    (void)reader_fail(reader, at, "the loader of '%s' raised %s: %s", wanted->type_key, kind,
                      message);
  raised_free(kind);
  return -1;
}

static int load(struct user_module *self, struct reader *reader) {
  size_t lengths = reader->dialect == DIALECT_TVM_FFI ? 16 : 8; /* of the key, and of the payload */
  size_t at = reader->offset - lengths - strlen(self->type->type_key), used = 0;
  uint64_t before = raised_at();
  const uint8_t *bytes;
  size_t most = reader_remaining(reader);
  struct reader whole = *reader; /* the loader may read any of it */
  if (reader_raw(&whole, most, "a payload", &bytes) != 0) return -1;
  if (self->type->load(bytes, most, &used, &self->self) != 0)
    return refuse(reader, at, self->type, before);
  self->is_loaded = 1;
  if (used <= most) return reader_raw(reader, used, "a payload", &bytes);
  return reader_fail(reader, at, "the loader of '%s' used %zu bytes, expected at most %zu",
                     self->type->type_key, used, most);
}

int user_type_load(const dso_type *wanted, struct reader *reader, dso_module **module) {
  struct span key = {wanted->type_key, strlen(wanted->type_key)};
  struct user_module *self = module_new(&type, key, sizeof *self, reader->owner);
  if (self == NULL) return -1;
  self->type = wanted;
  return module_give(&self->module, load(self, reader), module);
}
