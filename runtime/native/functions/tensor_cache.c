/* vm.builtin.tensor_cache.*: tensors by name. */
#include "functions/tensor_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "functions/global_functions.h"

struct cached {
  struct cached *next;
  dso_object *tensor;
  size_t size;
  char name[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cached *cache;

/* The link to the entry of a name, or to the end; under the lock. */
static struct cached **link_of(struct span name) {
  struct cached **link = &cache;
  while (*link != NULL &&
         ((*link)->size != name.size || memcmp((*link)->name, name.data, name.size) != 0))
    link = &(*link)->next;
  return link;
}

dso_object *tensor_cache_find(struct span name) {
  pthread_mutex_lock(&lock);
  struct cached *found = *link_of(name);
  dso_object *tensor = found != NULL ? found->tensor : NULL;
  if (tensor != NULL) object_retain(tensor);
  pthread_mutex_unlock(&lock);
  return tensor;
}

/* Without the lock, since the last reference to a tensor may run other code. */
static void free_all(struct cached *entries) {
  while (entries != NULL) {
    struct cached *next = entries->next;
    object_release(entries->tensor);
    free(entries);
    entries = next;
  }
}

/* ---- The functions */

GLOBAL_FUNCTION(global_tensor_cache_get) {
  struct span name;
  (void)handle;
  if (value_count("vm.builtin.tensor_cache.get", num_args, 1, 1) != 0 ||
      value_text("vm.builtin.tensor_cache.get", args, 0, &name) != 0)
    return -1;
  dso_object *tensor = tensor_cache_find(name);
  if (tensor != NULL) *result = (dso_any){.type_index = DSO_TENSOR, .v_ptr = tensor};
  return 0;
}

/* A Tensor object that owns its memory; a tensor by pointer is copied. */
static dso_object *own(const char *function, const dso_any *args, int32_t index) {
  const DLTensor *tensor = dso_tensor_of(&args[index]);
  if (args[index].type_index == DSO_TENSOR && tensor != NULL) {
    object_retain(args[index].v_ptr);
    return args[index].v_ptr;
  }
  if (tensor == NULL) {
    struct array unused;
    (void)take_array(function, args, index, &unused); /* raises TypeError */
    return NULL;
  }
  dso_object *copy = tensor_object_new(tensor->device, tensor->dtype, tensor->ndim, tensor->shape);
  if (copy == NULL || tensor_copy(&((dso_tensor_object *)(void *)copy)->tensor, tensor) == 0)
    return copy;
  object_release(copy);
  return NULL;
}

static struct cached *make_entry(struct span name, dso_object *tensor) {
  struct cached *entry = heap_new(sizeof *entry + name.size + 1);
  if (entry == NULL) return raised_null("OutOfMemoryError", "no memory to cache a tensor");
  *entry = (struct cached){.tensor = tensor, .size = name.size};
  memcpy(entry->name, name.data, name.size);
  return entry;
}

/* Name, tensor, and whether it may replace another one: not if that is left out. */
GLOBAL_FUNCTION(global_tensor_cache_update) {
  static const char function[] = "vm.builtin.tensor_cache.update";
  struct span name;
  int64_t may_replace = 0;
  (void)handle, (void)result;
  if (value_count(function, num_args, 2, 3) != 0 || value_text(function, args, 0, &name) != 0 ||
      (num_args == 3 && value_int(function, args, 2, &may_replace) != 0))
    return -1;
  dso_object *tensor = own(function, args, 1);
  struct cached *entry = tensor != NULL ? make_entry(name, tensor) : NULL;
  if (entry == NULL) {
    if (tensor != NULL) object_release(tensor);
    return -1;
  }
  pthread_mutex_lock(&lock);
  struct cached **link = link_of(name), *former = *link;
  int is_refused = former != NULL && !may_replace;
  if (!is_refused) {
    entry->next = former != NULL ? former->next : NULL;
    *link = entry;
  }
  pthread_mutex_unlock(&lock);
  struct cached *unused = is_refused ? entry : former;
  if (unused != NULL) unused->next = NULL;
  free_all(unused);
  if (!is_refused) return 0;
  return raised_format("ValueError", "%s: '%.*s' is cached already; pass True to replace it",
                       function, (int)(name.size < 200 ? name.size : 200), name.data);
}

GLOBAL_FUNCTION(global_tensor_cache_remove) {
  struct span name;
  (void)handle, (void)result;
  if (value_count("vm.builtin.tensor_cache.remove", num_args, 1, 1) != 0 ||
      value_text("vm.builtin.tensor_cache.remove", args, 0, &name) != 0)
    return -1;
  pthread_mutex_lock(&lock);
  struct cached **link = link_of(name), *removed = *link;
  if (removed != NULL) *link = removed->next;
  pthread_mutex_unlock(&lock);
  if (removed != NULL) removed->next = NULL;
  free_all(removed);
  return 0;
}

GLOBAL_FUNCTION(global_tensor_cache_clear) {
  (void)handle, (void)args, (void)result;
  if (value_count("vm.builtin.tensor_cache.clear", num_args, 0, 0) != 0) return -1;
  pthread_mutex_lock(&lock);
  struct cached *entries = cache;
  cache = NULL;
  pthread_mutex_unlock(&lock);
  free_all(entries);
  return 0;
}
