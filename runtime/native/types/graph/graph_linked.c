/* The parameters of a graph that were linked into its library. */

#include "abi/segment.h"
#include "types/graph/graph_executor.h"

/* TVM, tvm_lookup_linked_param: the function of a library that returns the address of a
 * storage_id. */
static const char LOOKUP[] = "_lookup_linked_param";

/* The segment of a loaded image bounds the data; memory that the library allocated has no bound. */
static int check_segment(struct span name, const void *address, size_t nbytes) {
  size_t room = segment_part_from(address).nbytes;
  if (room == 0 || nbytes <= room) return 0;
  struct text text = {0};
  text_format(&text, "%s: ", LOOKUP);
  text_repr(&text, name.data, name.size);
  text_format(&text, ": found %zu bytes at %p, expected at most %zu, where its segment ends",
              nbytes, address, room);
  return text_raise(&text, "BlobFormatError");
}

static int set_one(struct graph_executor *self, size_t input, dso_function *look_up) {
  const struct graph_entry *entry = &self->graph.entries[graph_input_entry(&self->graph, input)];
  const void *address;
  if (call_for_address(look_up, LOOKUP, &entry->storage_id, &address) != 0) return -1;
  if (address == NULL) return 0;
  if (check_segment(graph_input_node(&self->graph, input)->name, address, entry->nbytes) != 0)
    return -1;
  object_retain(&look_up->object);
  dso_tensor_object *array =
      tensor_object_view(entry->dtype, entry->ndim, entry->shape, &look_up->object);
  if (array == NULL) return -1;
  array->tensor.data = (void *)(uintptr_t)address;
  array->tensor.device = (DLDevice){.device_type = DLPACK_CPU, .device_id = 0};
  tensor_object_mark(&array->object, TENSOR_READ_ONLY);
  int status = graph_executor_set_param(self, input, array);
  object_release(&array->object);
  return status;
}

int graph_set_linked(struct graph_executor *self, const struct operator_finder *finder) {
  struct operator look_up = {NULL};
  int status = finder->find(finder->context, LOOKUP, &look_up);
  if (status <= 0) return status;
  status = 0;
  for (size_t i = 0; i < self->graph.num_inputs && status == 0; i++)
    status = set_one(self, i, (dso_function *)look_up.function);
  object_release(&look_up.function->object);
  return status;
}
