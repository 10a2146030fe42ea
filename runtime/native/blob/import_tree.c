/* The import tree of a blob: read, checked, visited. Takes linear time, and no C stack. */
#include "blob/import_tree.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"

static int no_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for an import tree");
}

/* ---- Reading */

static int read_numbers(struct reader *reader, uint64_t most, size_t *count, uint64_t **numbers) {
  if (reader_count(reader, sizeof **numbers, most, count) != 0) return -1;
  *numbers = heap_new((*count + 1) * sizeof **numbers);
  if (*numbers == NULL) return no_memory();
  for (size_t i = 0; i < *count; i++)
    if (reader_u64(reader, *numbers + i) != 0) return -1;
  return 0;
}

int tree_read(struct reader *reader, struct blob *blob) {
  blob->has_tree = 1;
  if (read_numbers(reader, TREE_MOST_MODULES + 1, &blob->num_row_ptr, &blob->row_ptr) != 0)
    return -1;
  return read_numbers(reader, TREE_MOST_CHILDREN, &blob->num_children, &blob->child_indices);
}

/* ---- Visiting. TVM of 2019 wrote a child once per import of it; all of them are one import. So
 * each child has the number of the row that visited it last. */

typedef int (*visit_child)(void *context, size_t parent, size_t child);

/* `last_rows` has a number per node, none of which is `row` + 1. */
static int visit_row(const struct blob *blob, size_t row, uint32_t *last_rows, visit_child visit,
                     void *context) {
  for (uint64_t i = blob->row_ptr[row]; i < blob->row_ptr[row + 1]; i++) {
    size_t child = (size_t)blob->child_indices[i];
    if (last_rows[child] == row + 1) continue;
    last_rows[child] = (uint32_t)(row + 1);
    int status = visit(context, row, child);
    if (status != 0) return status;
  }
  return 0;
}

int blob_visit_imports(const struct blob *blob, visit_child link, void *context) {
  int status = 0;
  if (!blob->has_tree) return 0;
  size_t num_nodes = blob->num_row_ptr - 1;
  uint32_t *last_rows = heap_new_zeroed(num_nodes, sizeof *last_rows);
  if (last_rows == NULL) return no_memory();
  for (size_t row = 0; row < num_nodes && status == 0; row++)
    status = visit_row(blob, row, last_rows, link, context);
  free(last_rows);
  return status;
}

/* ---- Checking: a walk in Kahn's order from the root omits modules that are on a cycle or below
 * one. */

struct walk {
  uint32_t *num_parents; /* per node: parents that the walk has not visited */
  uint32_t *ready;       /* a stack of nodes without such parents */
  size_t num_ready;
};

static int count_parent(void *context, size_t parent, size_t child) {
  struct walk *walk = context;
  (void)parent;
  walk->num_parents[child]++;
  return 0;
}

static int leave_parent(void *context, size_t parent, size_t child) {
  struct walk *walk = context;
  (void)parent;
  if (--walk->num_parents[child] == 0) walk->ready[walk->num_ready++] = (uint32_t)child;
  return 0;
}

static void walk_tree(const struct blob *blob, struct walk *walk, uint32_t *last_rows) {
  walk->num_ready = walk->num_parents[0] == 0 ? 1 : 0;
  walk->ready[0] = 0;
  while (walk->num_ready > 0) {
    size_t row = walk->ready[--walk->num_ready];
    (void)visit_row(blob, row, last_rows, leave_parent, walk);
  }
}

static int check_order(const struct reader *reader, const struct blob *blob, size_t num_nodes,
                       size_t at) {
  struct walk walk = {.num_parents = heap_new_zeroed(3 * num_nodes, sizeof *walk.num_parents)};
  if (walk.num_parents == NULL) return no_memory();
  uint32_t *last_rows = walk.num_parents + num_nodes;
  size_t orphan = 1, left = 0;
  int status = 0;
  walk.ready = last_rows + num_nodes;
  for (size_t row = 0; row < num_nodes; row++)
    (void)visit_row(blob, row, last_rows, count_parent, &walk);
  while (orphan < num_nodes && walk.num_parents[orphan] > 0) orphan++;
  if (orphan < num_nodes)
    status = reader_fail(reader, at, "module %zu cannot be reached from module 0, expected a tree",
                         orphan);
  memset(last_rows, 0, num_nodes * sizeof *last_rows);
  if (status == 0) walk_tree(blob, &walk, last_rows);
  while (left < num_nodes && walk.num_parents[left] == 0) left++;
  if (status == 0 && left < num_nodes)
    status =
        reader_fail(reader, at, "module %zu is on a cycle or below one, expected a tree", left);
  free(walk.num_parents);
  return status;
}

static int check_rows(const struct reader *reader, const struct blob *blob, size_t at) {
  const uint64_t *row_ptr = blob->row_ptr;
  uint64_t last = row_ptr[blob->num_row_ptr - 1];
  if (row_ptr[0] != 0 || last != blob->num_children)
    return reader_fail(reader, at, "row pointers from %llu to %llu, expected from 0 to %zu",
                       (unsigned long long)row_ptr[0], (unsigned long long)last,
                       blob->num_children);
  for (size_t i = 1; i < blob->num_row_ptr; i++)
    if (row_ptr[i - 1] > row_ptr[i])
      return reader_fail(reader, at, "row pointers that fall, expected them to rise");
  return 0;
}

int tree_check(const struct reader *reader, const struct blob *blob, size_t num_nodes, size_t at) {
  uint64_t highest = 0;
  if (num_nodes == 0)
    return reader_fail(reader, at, "an import tree over no modules, expected at least one");
  if (blob->num_row_ptr != num_nodes + 1)
    return reader_fail(reader, at, "%zu row pointers, expected %zu", blob->num_row_ptr,
                       num_nodes + 1);
  if (check_rows(reader, blob, at) != 0) return -1;
  for (size_t i = 0; i < blob->num_children; i++)
    if (blob->child_indices[i] > highest) highest = blob->child_indices[i];
  if (highest >= num_nodes)
    return reader_fail(reader, at, "child index %llu out of range, expected less than %zu",
                       (unsigned long long)highest, num_nodes);
  return check_order(reader, blob, num_nodes, at);
}
