/* Modules: references, metadata, imports, the entry, and values that hold them. */
#include <string.h>

#include "abi/raised.h"
#include "dso.h"
#include "dso/null.h"
#include "library/import_cache.h"
#include "module/embedder.h"
#include "module/embedder_lock.h"
#include "module/origin.h"
#include "scan/utf8.h"

void dso_module_retain(dso_module *module) {
  if (module != NULL) module_retain(module);
}

void dso_module_release(dso_module *module) {
  module_release(module);
  embedder_collect();
}

const char *dso_module_type_key(const dso_module *module) {
  return is_null(module, "dso_module_type_key", "a module") ? NULL : module->type_key;
}

/* ---- Metadata */

enum { MAX_METADATA = 1 << 20 };

static int refuse_metadata(const struct origin *origin, const char *what) {
  return raised_format("BlobFormatError",
                       "%s: __packer_library at 0x0: %s; export the library again", origin->path,
                       what);
}

int dso_module_metadata(const dso_module *module, const char **json) {
  if (is_null(json, "dso_module_metadata", "a place for the text")) return -1;
  *json = NULL;
  if (is_null(module, "dso_module_metadata", "a module")) return -1;
  const struct origin *origin = origin_of(module);
  const uint8_t *bytes;
  size_t nbytes;
  struct utf8_error error;
  int found = origin != NULL ? origin->type->data(origin, "__packer_library", &bytes, &nbytes) : 0;
  if (found <= 0) return found;
  if (nbytes > MAX_METADATA) return refuse_metadata(origin, "expected at most 1048576 bytes");
  if (memchr(bytes, 0, nbytes) != bytes + nbytes - 1)
    return refuse_metadata(origin, "expected text that ends with its only NUL");
  if (utf8_check((const char *)bytes, nbytes - 1, &error) != 0)
    return refuse_metadata(origin, "expected UTF-8 text");
  *json = (const char *)bytes;
  return 0;
}

/* ---- Imports */

size_t dso_module_imports(const dso_module *module, dso_module *const **imports) {
  dso_module *const *ignored = NULL;
  if (imports != NULL) *imports = NULL;
  if (is_null(module, "dso_module_imports", "a module")) return 0;
  return module_imports(module, imports != NULL ? imports : &ignored);
}

static int is_module(void *wanted, dso_module *module) { return module == wanted; }

/* Under the lock, so that two threads cannot make a cycle together. */
int dso_module_import(dso_module *module, dso_module *imported) {
  if (is_null(module, "dso_module_import", "a module") ||
      is_null(imported, "dso_module_import", "an import"))
    return -1;
  embedder_lock();
  int status = module_visit(imported, is_module, module);
  if (status == 0) status = module_append_import(module, imported);
  embedder_unlock();
  import_cache_expire();
  if (status <= 0) return status;
  return raised_format("ExportError", "importing module '%s' into module '%s' would make a cycle",
                       imported->type_key, module->type_key);
}

/* ---- The entry */

struct search {
  const char *name;
  uint64_t before;
};

static int find_entry(void *context, dso_module *module) {
  struct search *search = context;
  if (module->type->entry == NULL) return 0;
  search->name = module->type->entry(module);
  if (search->name != NULL) return 1;
  return raised_at() != search->before ? -1 : 0;
}

const char *dso_module_entry(dso_module *module) {
  if (is_null(module, "dso_module_entry", "a module")) return NULL;
  struct search search = {.before = raised_at()};
  int status = module_visit(module, find_entry, &search);
  return status < 0 ? NULL : status > 0 ? search.name : "main";
}

/* ---- Values */

dso_module *dso_module_of(const dso_any *value) {
  dso_module *module = NULL;
  if (is_null(value, "dso_module_of", "a value")) return NULL;
  if (value->type_index == DSO_MODULE && value->v_ptr != NULL)
    module = module_of_object(value->v_ptr);
  if (module == NULL)
    (void)raised_format("TypeError", "dso_module_of: expected a module of libdso, found %s",
                        value->type_index == DSO_MODULE ? "one of another runtime"
                                                        : "another value");
  return module;
}

dso_any dso_module_value(dso_module *module) {
  if (is_null(module, "dso_module_value", "a module")) return dso_none();
  return dso_object_value(&module->object);
}
