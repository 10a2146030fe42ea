/* libdso's readers of blobs and payloads, for tests/support/both_readers.py: describe what they
 * accept. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "abi/text.h"
#include "blob/arrays.h"
#include "blob/blob.h"
#include "module/loaders.h"

static int add_function(void *context, const char *name, const char *signature) {
  text_format(context, "|%s:%s", name, signature != NULL ? signature : "");
  return 0;
}

static int add_weight(void *context, const char *name, const DLTensor *tensor) {
  DLDataType dtype = tensor->dtype;
  text_format(context, "|%s=%d,%d,%d", name, dtype.code, dtype.bits, dtype.lanes);
  for (int i = 0; i < tensor->ndim; i++)
    text_format(context, ",%lld", (long long)tensor->shape[i]);
  return 0;
}

static void add_numbers(struct text *out, const uint64_t *numbers, size_t count) {
  text_format(out, "\n%zu:", count);
  for (size_t i = 0; i < count; i++) text_format(out, " %llu", (unsigned long long)numbers[i]);
}

static void add_error(struct text *out) {
  const char *kind = "", *message = "no error was raised";
  (void)raised_look(&kind, &message);
  text_format(out, "%s: %s", kind, message);
}

static void add_module(struct text *out, dso_module *module) {
  const struct module_type *type = module->type;
  if ((type->visit_functions && type->visit_functions(module, add_function, out) != 0) ||
      (type->visit_weights && type->visit_weights(module, add_weight, out) != 0))
    add_error(out);
}

static void add_entry(struct text *out, const struct blob_entry *entry) {
  text_format(out, "%.*s %zu %zu", (int)entry->key.size, entry->key.data, entry->offset,
              entry->nbytes);
  if (entry->module != NULL) {
    dso_module *module = module_of_object(entry->module);
    text_format(out, " is %s", module->type_key);
    add_module(out, module);
  }
  text_add(out, "\n", 1);
}

static int add_import(void *context, size_t parent, size_t child) {
  text_format(context, "\n%zu imports %zu", parent, child);
  return 0;
}

static void add_blob(struct text *out, const struct blob *blob) {
  uint32_t crc;
  for (size_t i = 0; i < blob->num_entries; i++) add_entry(out, &blob->entries[i]);
  (void)blob_structure(blob, &crc);
  text_format(out, "%08x", (unsigned)crc);
  if (!blob->has_tree) return;
  add_numbers(out, blob->row_ptr, blob->num_row_ptr);
  add_numbers(out, blob->child_indices, blob->num_children);
  if (blob_visit_imports(blob, add_import, out) != 0) add_error(out);
}

static void *copy_of(const void *bytes, size_t nbytes) {
  void *copy = malloc(nbytes > 0 ? nbytes : 1); /* a sanitizer sees reads beyond it */
  if (nbytes > 0) memcpy(copy, bytes, nbytes);
  return copy;
}

static dso_object *owner;

static void read_blob(struct reader *reader, struct span manifest, struct text *out) {
  struct blob blob;
  if (blob_parse(reader, &loaders, manifest, &blob) == 0) {
    add_blob(out, &blob);
    blob_clear(&blob);
  } else add_error(out);
}

static void read_params(const void *bytes, size_t nbytes, struct text *out) {
  struct named_arrays arrays;
  if (named_arrays_read_params(bytes, nbytes, owner, &arrays) != 0) {
    add_error(out);
    return;
  }
  for (size_t i = 0; i < arrays.count; i++) {
    const DLTensor *tensor = &arrays.items[i].tensor->tensor;
    text_add(out, arrays.items[i].name, arrays.items[i].name_size);
    text_format(out, " (%d, %d, %d) [", tensor->dtype.code, tensor->dtype.bits,
                tensor->dtype.lanes);
    for (int k = 0; k < tensor->ndim; k++) text_format(out, "%lld ", (long long)tensor->shape[k]);
    text_add(out, "] ", 2);
    if (ndarray_use(&arrays.items[i].tensor) == 0) text_format(out, "complete");
    else add_error(out);
    text_add(out, "\n", 1);
  }
  named_arrays_clear(&arrays);
}

static void read_payload(struct reader *reader, const char *key, struct text *out) {
  struct span type_key = {key, strlen(key)};
  dso_object *module;
  reader->path = NULL;
  reader->where = "payload";
  if (loaders.load(NULL, type_key, reader, &module) == 1) {
    text_format(out, "%s %zu", module_of_object(module)->type_key, reader->offset);
    add_module(out, module_of_object(module));
    object_release(module);
  } else add_error(out);
}

/* Return the text, which the next call frees, or NULL if something still refers to the bytes. With
 * a key, they are its payload, and maybe the last one. */
const char *read_any(const char *what, const void *bytes, size_t nbytes, const void *manifest,
                     size_t manifest_nbytes, const char *key, int is_last) {
  static struct text out;
  void *copy = copy_of(bytes, nbytes), *text = copy_of(manifest, manifest_nbytes);
  text_free(&out);
  if (owner == NULL) owner = object_new(sizeof *owner, DSO_OBJECT, object_free);
  struct span span = {manifest != NULL ? text : NULL, manifest_nbytes};
  struct reader reader = {
      .bytes = copy, .end = nbytes, .owner = owner, .path = "a/b.so", .where = "blob"};
  raised_forget();
  if (strcmp(what, "params") == 0) read_params(copy, nbytes, &out);
  else {
    if (strcmp(what, "tvm-ffi") == 0) reader.dialect = DIALECT_TVM_FFI;
    reader.is_last_entry = is_last;
    if (key != NULL) read_payload(&reader, key, &out);
    else if (strcmp(what, "symbol") != 0 || blob_skip_header(&reader) == 0)
      read_blob(&reader, span, &out);
    else add_error(&out);
  }
  free(copy);
  free(text);
  return object_is_sole(owner) ? text_of(&out) : NULL;
}

long fail_at(long n) { return heap_fail_at(n); }
