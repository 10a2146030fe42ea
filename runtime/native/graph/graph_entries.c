/* The arrays of graph JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/dtype.h"
#include "abi/dtype_name.h"
#include "abi/heap.h"
#include "abi/raised.h"
#include "graph/reading.h"

static const size_t MAX_NBYTES = (size_t)1 << 62;
static const int64_t MAX_INT32 = 0x7fffffff;

/* An attribute that has a value for each entry. */
static int read_column(const struct reading *self, const struct json *attrs, const char *key,
                       const char *tag, const struct json **column) {
  const struct json *value = json_member(attrs, key);
  char field[96];
  (void)snprintf(field, sizeof field, "attrs: %s", key);
  if (value == NULL || value->type != JSON_LIST || value->size != 2 ||
      !json_is_text(&value->items[0], tag))
    return wrong(self, field, value, "['%s', [...]]", tag), -1;
  *column = &value->items[1];
  size_t count = self->graph->num_entries;
  if ((*column)->type == JSON_LIST && (*column)->size == count) return 0;
  struct json size = {.type = JSON_INTEGER, .integer = (int64_t)(*column)->size};
  (void)snprintf(field, sizeof field, "attrs: %s: number of values", key);
  return wrong(self, field, (*column)->type == JSON_LIST ? &size : *column, "%zu, one per entry",
               count),
         -1;
}

struct columns {
  const struct json *shapes, *dtypes, *storage_ids;
  const struct json *devices, *scopes; /* or NULL */
};

static int read_columns(const struct reading *self, struct columns *columns) {
  const struct json *attrs = json_member(self->fields, "attrs");
  if (attrs == NULL || attrs->type != JSON_OBJECT)
    return wrong(self, "attrs", attrs, "an object"), -1;
  if (read_column(self, attrs, "shape", "list_shape", &columns->shapes) != 0) return -1;
  if (read_column(self, attrs, "dltype", "list_str", &columns->dtypes) != 0) return -1;
  if (read_column(self, attrs, "storage_id", "list_int", &columns->storage_ids) != 0) return -1;
  if (json_member(attrs, "device_index") != NULL &&
      read_column(self, attrs, "device_index", "list_int", &columns->devices) != 0)
    return -1;
  if (json_member(attrs, "storage_scope") == NULL) return 0;
  if (read_column(self, attrs, "storage_scope", "list_str", &columns->scopes) != 0) return -1;
  const struct json *scopes = columns->scopes;
  for (size_t i = 0; scopes != NULL && i < scopes->size; i++) {
    const struct json *scope = &scopes->items[i];
    if (!json_is_text(scope, "") && !json_is_text(scope, "global"))
      return wrong(self, "attrs: storage_scope", scope, "'global'");
  }
  return 0;
}

static int read_device(const struct reading *self, const struct json *value,
                       struct graph_entry *entry) {
  entry->device_type = GRAPH_NO_DEVICE;
  if (value == NULL) return 0;
  if (!is_index(value, MAX_INT32)) return wrong(self, ": device_index", value, "a DLDeviceType");
  entry->device_type = (int)value->integer;
  return 0;
}

static int read_dtype(const struct reading *self, const struct json *value,
                      struct graph_entry *entry) {
  if (value->type != JSON_TEXT || value->size >= 40 ||
      dtype_from_name(value->text, value->size, &entry->dtype) != 0 || entry->dtype.bits < 1 ||
      entry->dtype.bits > 128 || entry->dtype.lanes < 1)
    return wrong(self, ": dltype", value, "a data type like 'float32'");
  return 0;
}

static int read_shape(const struct reading *self, const struct json *value,
                      struct graph_entry *entry) {
  int is_shape = value->type == JSON_LIST && value->size <= GRAPH_MAX_NDIM;
  for (size_t i = 0; is_shape && i < value->size; i++)
    is_shape = value->items[i].type == JSON_INTEGER && value->items[i].integer >= 0;
  if (!is_shape)
    return wrong(self, ": shape", value, "at most %d extents of at least 0", GRAPH_MAX_NDIM);
  int64_t *shape = graph_allocate(self->graph, value->size, sizeof *shape);
  if (shape == NULL) return -1;
  for (size_t i = 0; i < value->size; i++) shape[i] = value->items[i].integer;
  entry->shape = shape;
  entry->ndim = (int)value->size;
  return 0;
}

static int read_one(const struct reading *self, const struct columns *columns, size_t index) {
  struct graph_entry *entry = &self->graph->entries[index];
  const struct json *device = columns->devices != NULL ? &columns->devices->items[index] : NULL;
  const struct json *storage_id = &columns->storage_ids->items[index];
  const struct json *shape = &columns->shapes->items[index];
  if (read_device(self, device, entry) != 0) return -1;
  if (read_dtype(self, &columns->dtypes->items[index], entry) != 0) return -1;
  if (!is_index(storage_id, MAX_INT32 + 1))
    return wrong(self, ": storage_id", storage_id, "0 to 2^31 - 1");
  entry->storage_id = storage_id->integer;
  if (read_shape(self, shape, entry) != 0) return -1;
  if (dtype_nbytes(entry->dtype, entry->ndim, entry->shape, &entry->nbytes) != 0 ||
      entry->nbytes >= MAX_NBYTES)
    return wrong(self, ": shape", shape, "a size that can be addressed");
  return 0;
}

int read_entries(struct reading *self) {
  struct graph *graph = self->graph;
  struct columns columns = {0};
  self->place = PLACE_WHOLE;
  if (read_columns(self, &columns) != 0) return -1;
  graph->entries = graph_allocate(graph, graph->num_entries + 1, sizeof *graph->entries);
  if (graph->entries == NULL) return -1;
  self->place = PLACE_OUTPUT;
  for (self->node = 0; self->node < graph->num_nodes; self->node++) {
    const struct graph_node *node = &graph->nodes[self->node];
    for (self->number = 0; self->number < node->num_outputs; self->number++)
      if (read_one(self, &columns, node->first_output + self->number) != 0) return -1;
  }
  return 0;
}

/* ---- Relations between entries */

struct stored {
  int64_t storage_id;
  size_t entry;
};

static int compare_stored(const void *left, const void *right) {
  const struct stored *a = left, *b = right;
  if (a->storage_id != b->storage_id) return a->storage_id < b->storage_id ? -1 : 1;
  return a->entry < b->entry ? -1 : a->entry > b->entry;
}

/* Find the first entry of each storage. */
static int find_leaders(struct graph *graph) {
  struct stored *all = heap_new((graph->num_entries + 1) * sizeof *all);
  if (all == NULL) return raised_format("OutOfMemoryError", "no memory for a graph");
  for (size_t i = 0; i < graph->num_entries; i++)
    all[i] = (struct stored){graph->entries[i].storage_id, i};
  qsort(all, graph->num_entries, sizeof *all, compare_stored);
  for (size_t i = 0, leader = 0; i < graph->num_entries; i++) {
    if (i == 0 || all[i].storage_id != all[i - 1].storage_id) leader = all[i].entry;
    graph->entries[all[i].entry].leader = leader;
  }
  free(all);
  return 0;
}

static const struct graph_node *node_of_entry(const struct graph *graph, size_t entry) {
  const struct graph_node *node = graph->nodes;
  while (entry >= node->first_output + node->num_outputs) node++;
  return node;
}

static int refuse_devices(const struct reading *self, size_t first, size_t second) {
  const struct graph *graph = self->graph;
  struct span one = node_of_entry(graph, first)->name, other = node_of_entry(graph, second)->name;
  struct text text = {0};
  text_format(&text, "storage_id %" PRId64 " of ", graph->entries[first].storage_id);
  text_shown(&text, one.data, one.size);
  text_add(&text, " and ", 5);
  text_shown(&text, other.data, other.size);
  text_format(&text, ": device_index, expected the same device, found [%d, %d]",
              graph->entries[first].device_type, graph->entries[second].device_type);
  return wrong_text(self, &text);
}

/* A sum of sizes that each are below 2^62: the lower 62 bits, and how often they overflowed. Shown
 * in two decimal halves. */
static int check_total(const struct reading *self, size_t *largest) {
  const uint64_t half = UINT64_C(1000000000000000000);
  uint64_t high = 0, low = 0;
  int is_large = 0;
  for (size_t i = 0; i < self->graph->num_entries; i++) {
    if (self->graph->entries[i].leader != i) continue;
    low += largest[i] % half;
    high += largest[i] / half + low / half;
    low %= half;
    is_large |= high > MAX_NBYTES / half || (high == MAX_NBYTES / half && low >= MAX_NBYTES % half);
  }
  if (!is_large) return 0;
  struct text text = {0};
  text_format(&text, "attrs: shape: bytes together, expected what can be addressed, found ");
  text_format(&text, "%" PRIu64 "%018" PRIu64, high, low);
  return wrong_text(self, &text);
}

int check_storage(struct reading *self) {
  struct graph *graph = self->graph;
  if (find_leaders(graph) != 0) return -1;
  size_t *largest = heap_new_zeroed(graph->num_entries + 1, sizeof *largest);
  if (largest == NULL) return raised_format("OutOfMemoryError", "no memory for a graph");
  int status = 0;
  self->place = PLACE_WHOLE;
  for (size_t i = 0; i < graph->num_entries && status == 0; i++) {
    const struct graph_entry *entry = &graph->entries[i];
    if (graph->entries[entry->leader].device_type != entry->device_type)
      status = refuse_devices(self, entry->leader, i);
    if (largest[entry->leader] < entry->nbytes) largest[entry->leader] = entry->nbytes;
  }
  if (status == 0) status = check_total(self, largest);
  free(largest);
  return status;
}
