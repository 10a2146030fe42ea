/* The functions of the executor itself: __nop keeps its input's memory and size, __copy its shape
 * and data type. */
#include <inttypes.h>
#include <string.h>

#include "graph/reading.h"

/* As a tuple of Python. */
static void add_shape(struct text *text, const struct graph_entry *entry) {
  text_add(text, "(", 1);
  for (int i = 0; i < entry->ndim; i++)
    text_format(text, "%s%" PRId64, i > 0 ? ", " : "", entry->shape[i]);
  text_format(text, entry->ndim == 1 ? ",)" : ")");
}

/* A long one is cut. */
static void add_shown_shape(struct text *text, const struct graph_entry *entry) {
  struct text all = {0};
  add_shape(&all, entry);
  text->is_broken |= all.is_broken;
  text_format(text, "%.80s%s", text_of(&all), all.size > 80 ? "..." : "");
  text_free(&all);
}

static int refuse_number(const struct reading *self, const char *field, uint64_t found,
                         uint64_t wanted) {
  struct text text = {0};
  add_place(self, &text, field);
  text_format(&text, ", expected its input's %" PRIu64 ", found %" PRIu64, wanted, found);
  return wrong_text(self, &text);
}

static int refuse_shape(const struct reading *self, const struct graph_entry *output,
                        const struct graph_entry *source) {
  struct text text = {0};
  add_place(self, &text, ": " GRAPH_COPY ": shape, expected its input's ");
  add_shape(&text, source);
  text_format(&text, ", and dltype, found ");
  add_shown_shape(&text, output);
  return wrong_text(self, &text);
}

static int is_alike(const struct graph_entry *a, const struct graph_entry *b) {
  return a->ndim == b->ndim && a->dtype.code == b->dtype.code && a->dtype.bits == b->dtype.bits &&
         a->dtype.lanes == b->dtype.lanes &&
         (a->ndim == 0 || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0);
}

static int check_node(const struct reading *self, const struct graph_node *node) {
  const struct graph_entry *source = &self->graph->entries[node->inputs[0]];
  const struct graph_entry *output = &self->graph->entries[node->first_output];
  int is_nop = graph_calls(node, GRAPH_NOP);
  if (is_nop && output->storage_id != source->storage_id)
    return refuse_number(self, ": " GRAPH_NOP ": storage_id", (uint64_t)output->storage_id,
                         (uint64_t)source->storage_id);
  if (output->nbytes != source->nbytes)
    return refuse_number(self, is_nop ? ": " GRAPH_NOP ": bytes" : ": " GRAPH_COPY ": bytes",
                         output->nbytes, source->nbytes);
  return is_nop || is_alike(output, source) ? 0 : refuse_shape(self, output, source);
}

int check_own_functions(struct reading *self) {
  const struct graph *graph = self->graph;
  self->place = PLACE_NAME;
  for (self->node = 0; self->node < graph->num_nodes; self->node++) {
    const struct graph_node *node = &graph->nodes[self->node];
    if (!graph_calls(node, GRAPH_NOP) && !graph_calls(node, GRAPH_COPY)) continue;
    if (check_node(self, node) != 0) return -1;
  }
  self->node = 0;
  return 0;
}
