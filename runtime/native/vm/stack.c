/* The growth of a run's stack, and views of borrowed tensors. */
#include "vm/stack.h"

#include <stdlib.h>

#include "abi/heap.h"

struct vm *vm_of_run(const struct vm_run *run) { return run->vm; }

struct session *vm_session_of_run(const struct vm_run *run) { return run->session; }

/* The kernel zeroes the pages of new memory: 8 bytes take as long as a jump. */
enum { BYTES_PER_STEP = 8 };

void vm_count_bytes(struct vm_run *run, size_t nbytes) {
  run->pace.steps -= (int64_t)(nbytes / BYTES_PER_STEP);
}

static int out_of_memory(void) {
  return raised_format("OutOfMemoryError", "no memory for the virtual machine's stack");
}

/* ---- Views of borrowed tensors */

DLTensor *vm_borrow_view(struct vm_run *run, const DLTensor *tensor, int32_t ndim,
                         const int64_t *dims) {
  struct borrowed_view *view = heap_new(sizeof *view + (size_t)ndim * sizeof *dims);
  if (view == NULL) {
    out_of_memory();
    return NULL;
  }
  view->next = run->views;
  run->views = view;
  view->tensor = *tensor;
  view->tensor.ndim = ndim;
  view->tensor.shape = view->dims;
  view->tensor.strides = NULL; /* compact */
  if (ndim > 0) memcpy(view->dims, dims, (size_t)ndim * sizeof *dims);
  return &view->tensor;
}

void vm_stack_end_views(struct vm_run *run) {
  while (run->views != NULL) {
    struct borrowed_view *view = run->views;
    run->views = view->next;
    free(view);
  }
}

/* ---- The stack */

static int grow(void **memory, void *room, size_t *capacity, size_t needed, size_t itemsize,
                size_t used) {
  size_t larger = 2 * *capacity > needed ? 2 * *capacity : needed;
  void *grown = heap_resize(*memory == room ? NULL : *memory, larger * itemsize);
  if (grown == NULL) return out_of_memory();
  if (*memory == room) memcpy(grown, room, used * itemsize);
  *memory = grown;
  *capacity = larger;
  return 0;
}

int vm_stack_reserve(struct vm_run *run, size_t num_values) {
  size_t needed = run->num_values + num_values;
  void *values = run->values, *frames = run->frames;
  if (needed > run->values_capacity) {
    if (grow(&values, run->room_values, &run->values_capacity, needed, sizeof *run->values,
             run->num_values) != 0)
      return -1;
    run->values = values;
  }
  if (run->num_frames < run->frames_capacity) return 0;
  if (grow(&frames, run->room_frames, &run->frames_capacity, run->num_frames + 1,
           sizeof *run->frames, run->num_frames) != 0)
    return -1;
  run->frames = frames;
  return 0;
}
