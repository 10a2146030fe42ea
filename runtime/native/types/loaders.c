/* The table of loaders by type key. */
#include "module/loaders.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "module/embedder_lock.h"
#include "module/names.h"
#include "types/opaque.h"
#include "types/user_type.h"
#include "types/families.h"

struct row {
  const char *key;
  module_loader load;
};

static const struct row rows[] = {
    {"cuda", load_device},
    {"opencl", load_device},
    {"hip", load_device},
    {"hsaco", load_device},
    {"hexagon", load_device},
    {"aocl", load_device},
    {"sdaccel", load_device},
    {"metal", load_device},
    {"vulkan", load_device},
    {"webgpu", load_device},
    {"const_loader", load_const_loader},
    {"metadata", load_const_loader},
    {"metadata_module", load_metadata_module},
    {"GraphExecutorFactory", load_graph_factory},
    {"GraphRuntimeFactory", load_graph_factory},
    {"AotExecutorFactory", load_aot_factory},
    {"safetensors", load_safetensors},
    {"shared_library", load_shared_library},
    {"c", load_source},
    {"static_library", load_source},
    {"relax.VMExecutable", load_vm_executable},
    {"relax.Executable", load_vm_executable},
};

enum { NUM_ROWS = sizeof rows / sizeof *rows };

/* The types that the program registered; never removed. */
struct registered {
  struct registered *next;
  const dso_type *type;
};

static struct registered *registered;

static int is_key(const char *text, struct span key) {
  return strlen(text) == key.size && memcmp(text, key.data, key.size) == 0;
}

static const dso_type *find_registered(struct span key) {
  const struct registered *at = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
  while (at != NULL && !is_key(at->type->type_key, key)) at = at->next;
  return at != NULL ? at->type : NULL;
}

static module_loader find_own(struct span key) {
  static const char json[] = "_json";
  size_t length = sizeof json - 1;
  for (size_t i = 0; i < NUM_ROWS; i++)
    if (is_key(rows[i].key, key)) return rows[i].load;
  int is_json = key.size >= length && memcmp(key.data + key.size - length, json, length) == 0;
  return is_json ? load_json_runtime : NULL;
}

int loaders_register(const dso_type *type) {
  struct span key = {type->type_key, strlen(type->type_key)};
  struct registered *added = heap_new(sizeof *added);
  if (added == NULL) return raised_format("OutOfMemoryError", "no memory to register a loader");
  int is_taken = 0;
  for (size_t i = 0; i < NUM_ROWS; i++) is_taken |= is_key(rows[i].key, key);
  embedder_lock();
  is_taken |= find_registered(key) != NULL;
  if (!is_taken) {
    *added = (struct registered){registered, type};
    __atomic_store_n(&registered, added, __ATOMIC_RELEASE);
  }
  embedder_unlock();
  if (!is_taken) return 0;
  free(added);
  return raised_format("ValueError", "type key '%s' already has a loader", type->type_key);
}

void loaders_list(struct text *text) {
  struct names names = {.count = 0};
  int status = names_add(&names, "_lib") != 0 || names_add(&names, "*_json") != 0;
  for (size_t i = 0; i < NUM_ROWS && status == 0; i++) status = names_add(&names, rows[i].key);
  const struct registered *at = __atomic_load_n(&registered, __ATOMIC_ACQUIRE);
  for (; at != NULL && status == 0; at = at->next) status = names_add(&names, at->type->type_key);
  names_sort(&names);
  for (size_t i = 0; i < names.count; i++)
    text_format(text, "%s%s", i > 0 ? ", " : "", names.items[i]);
  names_clear(&names);
}

/* ---- The callbacks of a blob's parser */

static int load(void *context, struct span key, struct reader *reader, dso_object **object) {
  const dso_type *type = find_registered(key);
  module_loader own = type == NULL ? find_own(key) : NULL;
  dso_module *module;
  (void)context;
  if (type == NULL && own == NULL) return 0;
  int status = type != NULL ? user_type_load(type, reader, &module) : own(reader, key, &module);
  if (status != 0) return -1;
  *object = &module->object;
  return 1;
}

static dso_object *carry(void *context, struct span key, struct span payload, dso_object *owner) {
  (void)context;
  dso_module *module = opaque_module_new(key, payload, owner);
  return module != NULL ? &module->object : NULL;
}

static int refuse(void *context, const struct reader *reader, struct span key, size_t at) {
  struct text known = {0};
  (void)context;
  loaders_list(&known);
  (void)raised_format("LoaderNotFoundError",
                      "%s%s%s at 0x%zx: module type '%.*s' has no loader here; known: %s. Register "
                      "one with dso_register_loader",
                      reader->path != NULL ? reader->path : "", reader->path != NULL ? ": " : "",
                      reader->where, at, (int)key.size, key.data, text_of(&known));
  text_free(&known);
  return -1;
}

static int carries_imports(void *context, const dso_object *object) {
  (void)context;
  return module_of_object(object)->type->carries_imports;
}

const struct blob_loader loaders = {
    .load = load, .carry = carry, .refuse = refuse, .carries_imports = carries_imports};
