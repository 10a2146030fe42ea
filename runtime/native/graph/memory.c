/* The memory of a graph's arrays: one arena on the CPU, one block per storage on devices. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "device/cpu_memory.h"
#include "device/device_api.h"
#include "graph/binding.h"

static const DLDevice CPU = {.device_type = DLPACK_CPU, .device_id = 0};

static int is_same(DLDevice a, DLDevice b) {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

/* ---- Devices */

static int refuse_kind(int device_type, const DLDevice *devices, int num_devices) {
  struct text text = {0};
  text_format(&text,
              "graph: found arrays of device type %d, expected a device of that kind, given ",
              device_type);
  for (int i = 0; i < num_devices && i < 8; i++) {
    const char *name = device_kind_name(devices[i].device_type);
    text_format(&text, i > 0 ? ", '" : "'");
    if (name != NULL) text_format(&text, "%s:%d'", name, devices[i].device_id);
    else text_format(&text, "device[%d]:%d'", devices[i].device_type, devices[i].device_id);
  }
  if (num_devices > 8) text_format(&text, " and %d more", num_devices - 8);
  return text_raise(&text, "DeviceError");
}

int graph_place(const struct graph *graph, const DLDevice *devices, int num_devices,
                DLDevice *places) {
  if (num_devices == 0) devices = &CPU, num_devices = 1;
  for (size_t i = 0; i < graph->num_entries; i++) {
    int type = graph->entries[i].device_type, at = 0;
    while (type != GRAPH_NO_DEVICE && at < num_devices && devices[at].device_type != type) at++;
    if (at == num_devices && type != DLPACK_CPU) return refuse_kind(type, devices, num_devices);
    places[i] = at < num_devices ? devices[at] : CPU;
  }
  return 0;
}

/* ---- The arena: zeroed pages, which take no memory before they are touched; or zeroed memory of the
 * program's allocator */

struct arena {
  dso_object object;
  void *start;
  size_t nbytes;
  int is_of_program;
};

static void arena_delete(void *self, int flags) {
  const struct arena *arena = self;
  if ((flags & DSO_DELETE_STRONG) && arena->start != NULL) {
    if (arena->is_of_program) cpu_memory_free(arena->start);
    else (void)munmap(arena->start, arena->nbytes);
  }
  object_free(self, flags);
}

static void *new_pages(size_t nbytes) {
  void *start = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return start != MAP_FAILED ? start : NULL;
}

static void *new_of_program(size_t nbytes) {
  void *start = cpu_memory_new(nbytes, TENSOR_ALIGNMENT);
  if (start == NULL) errno = ENOMEM;
  else memset(start, 0, nbytes);
  return start;
}

static struct arena *arena_new(size_t nbytes) {
  struct arena *arena = object_new(sizeof *arena, DSO_OBJECT, arena_delete);
  if (arena == NULL) return raised_null("OutOfMemoryError", "no memory for a graph");
  if (nbytes == 0) return arena;
  arena->nbytes = nbytes;
  arena->is_of_program = cpu_memory_is_of_program();
  arena->start = arena->is_of_program ? new_of_program(nbytes) : new_pages(nbytes);
  if (arena->start != NULL) return arena;
  (void)raised_format("OutOfMemoryError",
                      "the graph's arrays take %zu bytes: %s; use smaller shapes", nbytes,
                      strerror(errno));
  object_release(&arena->object);
  return NULL;
}

/* ---- The plan */

struct storage {
  size_t nbytes, offset; /* the largest of its entries; where it is in the arena */
  dso_object *memory;    /* on a device */
};

/* The storages are at the index of their first entry. */
static size_t measure(const struct graph *graph, const DLDevice *places, struct storage *storages) {
  size_t total = 0;
  for (size_t i = 0; i < graph->num_entries; i++) {
    struct storage *storage = &storages[graph->entries[i].leader];
    if (storage->nbytes < graph->entries[i].nbytes) storage->nbytes = graph->entries[i].nbytes;
  }
  for (size_t i = 0; i < graph->num_entries; i++) {
    if (graph->entries[i].leader != i || !is_same(places[i], CPU)) continue;
    storages[i].offset = total;
    total += (storages[i].nbytes + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
  }
  return total;
}

static int allocate_on_devices(const struct graph *graph, const DLDevice *places,
                               struct storage *storages) {
  const DLDataType bytes = {.code = 1, .bits = 8, .lanes = 1};
  for (size_t i = 0; i < graph->num_entries; i++) {
    if (graph->entries[i].leader != i || is_same(places[i], CPU)) continue;
    int64_t shape = (int64_t)storages[i].nbytes;
    if ((storages[i].memory = tensor_object_new(places[i], bytes, 1, &shape)) == NULL) return -1;
  }
  return 0;
}

static int make_array(const struct graph_entry *entry, DLDevice place,
                      const struct storage *storage, struct arena *arena,
                      dso_tensor_object **array) {
  dso_object *owner = storage->memory != NULL ? storage->memory : &arena->object;
  object_retain(owner);
  *array = tensor_object_view(entry->dtype, entry->ndim, entry->shape, owner);
  if (*array == NULL) return -1;
  DLTensor *tensor = &(*array)->tensor;
  tensor->device = place;
  if (storage->memory != NULL) tensor->data = ((dso_tensor_object *)(void *)owner)->tensor.data;
  else if (arena->start != NULL) tensor->data = (char *)arena->start + storage->offset;
  return 0;
}

static int make_arrays(const struct graph *graph, const DLDevice *places, struct storage *storages,
                       dso_tensor_object **arrays) {
  struct arena *arena = arena_new(measure(graph, places, storages));
  if (arena == NULL) return -1;
  int status = allocate_on_devices(graph, places, storages);
  for (size_t i = 0; i < graph->num_entries && status == 0; i++)
    status = make_array(&graph->entries[i], places[i], &storages[graph->entries[i].leader], arena,
                        &arrays[i]);
  object_release(&arena->object);
  return status;
}

int graph_plan_memory(const struct graph *graph, const DLDevice *places,
                      dso_tensor_object **arrays) {
  struct storage *storages = heap_new_zeroed(graph->num_entries + 1, sizeof *storages);
  if (storages == NULL) return raised_format("OutOfMemoryError", "no memory for a graph");
  int status = make_arrays(graph, places, storages, arrays);
  for (size_t i = 0; i < graph->num_entries; i++)
    if (storages[i].memory != NULL) object_release(storages[i].memory);
  free(storages);
  return status;
}

dso_tensor_object *graph_view(dso_tensor_object *array, DLDataType dtype, int ndim,
                              const int64_t *shape) {
  object_retain(&array->object);
  dso_tensor_object *view = tensor_object_view(dtype, ndim, shape, &array->object);
  if (view == NULL) return NULL;
  view->tensor.data = array->tensor.data;
  view->tensor.device = array->tensor.device;
  view->tensor.byte_offset = array->tensor.byte_offset;
  return view;
}
