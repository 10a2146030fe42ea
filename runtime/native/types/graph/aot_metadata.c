/* The metadata of a model that was compiled ahead of time: a C structure in its library, which
 * get_c_metadata returns. Pointers are trusted, as the code is. Counts are bounded, and by the image
 * if the arrays are in one, so that metadata of another layout is refused. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "abi/dtype.h"
#include "abi/raised.h"
#include "abi/segment.h"
#include "types/graph/graph_executor.h"

static const char NAME[] = AOT_METADATA;

/* TVM, metadata_types.h */
struct tensor_info {
  const char *name;
  const int64_t *shape;
  int64_t num_shape;
  DLDataType dtype;
};

struct metadata {
  int64_t version;
  const struct tensor_info *inputs;
  int64_t num_inputs;
  const struct tensor_info *outputs;
  int64_t num_outputs;
  const void *workspace_pools;
  int64_t num_workspace_pools;
  const void *constant_pools;
  int64_t num_constant_pools;
  const char *mod_name;
};

enum { VERSION = 1, MAX_TENSORS = 10000 };

/* ---- Memory of the library: the segment that contains it bounds it */

static int check_room(const char *what, const void *address, int64_t count, size_t nbytes) {
  struct text text = {0};
  size_t room = address != NULL ? segment_part_from(address).nbytes : 0;
  if (nbytes == 0 || (address != NULL && (room == 0 || nbytes <= room))) return 0;
  text_format(&text, "%s: ", NAME);
  if (what != NULL) text_format(&text, "%s: found %" PRId64 " in ", what, count);
  if (address == NULL) text_format(&text, "%zu bytes at NULL", nbytes);
  else
    text_format(&text, "%zu bytes at %p, expected at most %zu, where its segment ends", nbytes,
                address, room);
  (void)text_raise(&text, "BlobFormatError");
  return -1;
}

static int check_array(const char *what, const void *address, int64_t count, size_t itemsize,
                       int64_t most) {
  if (count >= 0 && count <= most)
    return check_room(what, address, count, (size_t)count * itemsize);
  return raised_format("BlobFormatError", "%s: %s: expected 0 to %" PRId64 ", found %" PRId64, NAME,
                       what, most, count);
}

/* Copy a text of the library, and `more` after it. */
static int copy_text(struct graph *graph, const char *text, const char *more, struct span *copied) {
  size_t room = text != NULL ? segment_part_from(text).nbytes : 0;
  size_t size = text != NULL ? strnlen(text, room > 0 ? room : PTRDIFF_MAX) : 0;
  size_t more_size = strlen(more);
  char *copy = graph_allocate(graph, size + more_size + 1, 1); /* zeroed: a NUL follows */
  if (copy == NULL) return -1;
  if (size > 0) memcpy(copy, text, size);
  for (size_t i = 0; i < more_size; i++) copy[size + i] = more[i];
  *copied = (struct span){copy, size + more_size};
  return 0;
}

/* ---- Tensors */

static int refuse_size(const struct graph_entry *entry, struct span name) {
  struct text text = {0};
  text_format(&text, "%s: ", NAME);
  text_repr(&text, name.data, name.size);
  text_format(&text, ": expected a size that can be addressed, found [");
  for (int i = 0; i < entry->ndim; i++)
    text_format(&text, "%s%" PRId64, i > 0 ? ", " : "", entry->shape[i]);
  text_format(&text, "] of data type (%d, %d, %d)", entry->dtype.code, entry->dtype.bits,
              entry->dtype.lanes);
  return text_raise(&text, "BlobFormatError");
}

static int read_tensor(struct graph *graph, const struct tensor_info *info,
                       struct graph_entry *entry, struct span *name) {
  struct text what = {0};
  if (copy_text(graph, info->name, "", name) != 0) return -1;
  text_format(&what, "shape of ");
  text_repr(&what, name->data, name->size);
  int status =
      check_array(text_of(&what), info->shape, info->num_shape, sizeof(int64_t), GRAPH_MAX_NDIM);
  text_free(&what);
  if (status != 0) return -1;
  int64_t *shape = graph_allocate(graph, (size_t)info->num_shape, sizeof *shape);
  if (shape == NULL) return -1;
  if (info->num_shape > 0) memcpy(shape, info->shape, (size_t)info->num_shape * sizeof *shape);
  *entry = (struct graph_entry){.shape = shape,
                                .ndim = (int)info->num_shape,
                                .dtype = info->dtype,
                                .device_type = GRAPH_NO_DEVICE};
  return 0;
}

static int check_size(struct graph_entry *entry, struct span name) {
  if (dtype_nbytes(entry->dtype, entry->ndim, entry->shape, &entry->nbytes) != 0 ||
      entry->nbytes >= (size_t)1 << 62)
    return refuse_size(entry, name);
  return 0;
}

static int read_tensors(struct graph *graph, const struct tensor_info *infos, size_t first,
                        size_t count, struct span *names) {
  for (size_t i = 0; i < count; i++) {
    struct graph_entry *entry = &graph->entries[first + i];
    if (read_tensor(graph, &infos[i], entry, &names[first + i]) != 0) return -1;
    entry->storage_id = (int64_t)(first + i);
    entry->leader = first + i;
  }
  return 0;
}

static int read_all(struct graph *graph, const struct metadata *metadata, struct span *names) {
  size_t num_inputs = (size_t)metadata->num_inputs;
  if (read_tensors(graph, metadata->inputs, 0, num_inputs, names) != 0) return -1;
  if (check_array("outputs", metadata->outputs, metadata->num_outputs, sizeof *metadata->outputs,
                  MAX_TENSORS) != 0)
    return -1;
  if (read_tensors(graph, metadata->outputs, num_inputs, (size_t)metadata->num_outputs, names) != 0)
    return -1;
  for (size_t i = 0; i < graph->num_entries; i++)
    if (check_size(&graph->entries[i], names[i]) != 0) return -1;
  return 0;
}

/* ---- The graph: its inputs, and the main function */

static int make_nodes(struct graph *graph, const struct metadata *metadata,
                      const struct span *names) {
  size_t num_inputs = (size_t)metadata->num_inputs;
  for (size_t i = 0; i < num_inputs; i++) {
    graph->nodes[i] = (struct graph_node){.name = names[i], .first_output = i, .num_outputs = 1};
    graph->inputs[i] = i;
  }
  struct graph_node *node = &graph->nodes[num_inputs];
  if (copy_text(graph, metadata->mod_name, "___tvm_main__", &node->function) != 0) return -1;
  node->name = node->function;
  node->inputs = graph->inputs;
  node->num_inputs = graph->num_inputs = num_inputs;
  node->first_output = num_inputs;
  node->num_outputs = graph->num_outputs = (size_t)metadata->num_outputs;
  for (size_t i = 0; i < graph->num_outputs; i++) graph->outputs[i] = num_inputs + i;
  graph->num_nodes = num_inputs + 1;
  graph->has_c_names = 1;
  size_t twice;
  return graph_sort_names(graph, &twice);
}

static int read_metadata(struct graph *graph, const struct metadata *metadata) {
  if (check_room(NULL, metadata, 0, sizeof *metadata) != 0) return -1;
  if (metadata->version != VERSION || metadata->num_workspace_pools != 0)
    return raised_format("BlobFormatError",
                         "%s: expected version 1 without pools, found version %" PRId64
                         " with %" PRId64 " memory pools",
                         NAME, metadata->version, metadata->num_workspace_pools);
  if (check_array("inputs", metadata->inputs, metadata->num_inputs, sizeof *metadata->inputs,
                  MAX_TENSORS) != 0)
    return -1;
  int is_count = metadata->num_outputs >= 0 && metadata->num_outputs <= MAX_TENSORS;
  graph->num_entries =
      (size_t)metadata->num_inputs + (is_count ? (size_t)metadata->num_outputs : 0);
  graph->entries = graph_allocate(graph, graph->num_entries + 1, sizeof *graph->entries);
  graph->nodes = graph_allocate(graph, graph->num_entries + 1, sizeof *graph->nodes);
  graph->inputs = graph_allocate(graph, graph->num_entries + 1, sizeof *graph->inputs);
  graph->outputs = graph_allocate(graph, graph->num_entries + 1, sizeof *graph->outputs);
  struct span *names = graph_allocate(graph, graph->num_entries + 1, sizeof *names);
  if (graph->entries == NULL || graph->nodes == NULL || graph->inputs == NULL ||
      graph->outputs == NULL || names == NULL)
    return -1;
  return read_all(graph, metadata, names) == 0 ? make_nodes(graph, metadata, names) : -1;
}

int aot_graph_read(struct graph *graph, dso_function *get_c_metadata) {
  const void *address;
  *graph = (struct graph){0};
  int status = call_for_address(get_c_metadata, NAME, NULL, &address);
  if (status == 0 && address == NULL)
    status = raised_format("BlobFormatError", "%s: found no metadata", NAME);
  if (status == 0) status = read_metadata(graph, address);
  if (status != 0) graph_free(graph);
  return status;
}
