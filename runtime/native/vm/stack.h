/* The stack of one run of a virtual machine: frames and their registers. */
#pragma once

#include <string.h>

#include "abi/raised.h"
#include "vm/vm.h"

/* Bytecode calls do not use the C stack, so these bounds only limit memory (128 MiB of
 * registers). */
enum { MOST_FRAMES = 10000, MOST_VALUES = 1 << 23 };

struct vm_frame {
  const struct vm_routine *routine;
  const struct vm_instruction *next; /* where the caller continues */
  size_t registers;                  /* index of the first register in the run's values */
  int32_t dst;                       /* the caller's register for the result */
};

struct borrowed_view {
  struct borrowed_view *next;
  DLTensor tensor;
  int64_t dims[];
};

/* When a run polls for signals (loop.h): by work, so that the clock is read rarely. */
struct vm_pace {
  int64_t steps;     /* of work until the clock is read */
  int64_t most;      /* `steps` starts from it: doubled if the clock did not move, else 1 */
  int64_t now;       /* when the clock was read, in milliseconds */
  int64_t next_poll; /* the same for signals */
};

struct vm_run {
  struct vm *vm;
  dso_any *values; /* of all frames: registers, then space for arguments */
  struct vm_frame *frames;
  size_t num_values, values_capacity, num_frames, frames_capacity;
  struct borrowed_view *views;
  struct vm_pace pace;
  dso_any *room_values; /* on the C stack, used until the first allocation */
  struct vm_frame *room_frames;
  dso_function_object *instrument; /* retained for the run, or NULL */
  struct session *session;         /* borrowed for the run, or NULL */
};

/* Reserve space for `num_values` values and for one frame. Returns 0, or -1 with MemoryError
 * raised. */
int vm_stack_reserve(struct vm_run *run, size_t num_values);

/* Free the views that vm_borrow_view made. */
void vm_stack_end_views(struct vm_run *run);

/* Push a frame with empty registers. */
static inline int push(struct vm_run *run, const struct vm_routine *routine,
                       const struct vm_instruction *next, int32_t dst) {
  size_t count = (size_t)routine->num_registers + (size_t)routine->most_args;
  if (run->num_frames == MOST_FRAMES)
    return raised_format("RecursionError",
                         "%.80s: calls are nested too deeply, expected at most %d", routine->name,
                         MOST_FRAMES);
  if (run->num_values + count > MOST_VALUES && run->num_frames > 0)
    return raised_format("RecursionError",
                         "%.80s: nested calls use too many registers, expected at most %d",
                         routine->name, MOST_VALUES);
  if (run->num_values + count > run->values_capacity || run->num_frames == run->frames_capacity)
    if (vm_stack_reserve(run, count) != 0) return -1;
  run->frames[run->num_frames++] =
      (struct vm_frame){.routine = routine, .next = next, .registers = run->num_values, .dst = dst};
  memset(run->values + run->num_values, 0, (size_t)routine->num_registers * sizeof *run->values);
  run->num_values += count;
  return 0;
}

static inline void pop(struct vm_run *run) {
  const struct vm_frame *frame = &run->frames[--run->num_frames];
  dso_any *registers = run->values + frame->registers;
  for (int32_t i = 0; i < frame->routine->num_registers; i++) any_release(&registers[i]);
  run->num_values = frame->registers;
}
