/* Running bound bytecode: calls from outside, and of functions. */
#include <stdlib.h>
#include <string.h>

#include "vm/loop.h"

/* Re-entering the VM from a callee uses the C stack; this bounds it. */
enum { MOST_RUNS = 64 };

enum { ROOM_VALUES = 192, ROOM_FRAMES = 8 };

/* The number of active runs in this thread, each called by the previous one. */
static _Thread_local int num_runs;

/* How the last run of this thread polled; the next one continues if the clock did not move. */
static _Thread_local struct vm_pace thread_pace;

static struct vm_pace begin_pace(void) {
  int64_t now = embedder.now(), steps = now == thread_pace.now ? thread_pace.most : 1;
  return (struct vm_pace){.steps = steps, .most = steps, .now = now, .next_poll = now + POLL_MS};
}

/* ---- Calls */

/* The result of a function must be an owned value. */
static int refuse_result(const dso_any *value) {
  return raised_format("TypeError",
                       "function returned a borrowed value (type index %d), expected an owned one",
                       (int)value->type_index);
}

int vm_call_function(dso_function_object *function, const dso_any *args, int32_t num_args,
                     dso_any *result) {
  int status = function->safe_call(function, args, num_args, result);
  if (status == 0 && result->type_index >= DSO_DLTENSOR_PTR && result->type_index < DSO_SMALL_STR)
    status = refuse_result(result);
  if (status != 0) *result = (dso_any){.type_index = DSO_NONE};
  return status != 0 ? -1 : 0;
}

/* Of a machine that does not measure: the loop has no step for it. */
static __attribute__((noinline)) int execute(struct vm_run *run, dso_any *result) {
  return vm_loop(run, result, NULL, 0);
}

/* ---- Calls from outside the machine */

static int admit_all(struct vm_run *run, const dso_any *args, int32_t num_args) {
  for (int32_t i = 0; i < num_args; i++)
    if (vm_admit(run->vm, &args[i], &run->values[i]) != 0) {
      run->values[i].type_index = DSO_NONE;
      return -1;
    }
  return 0;
}

static int start(struct vm_run *run, const struct vm_routine *routine, const dso_any *args,
                 int32_t num_args, dso_any *result) {
  if (num_args != routine->num_args)
    return raised_format("TypeError", "%.80s: expected %d arguments, found %d", routine->name,
                         (int)routine->num_args, (int)num_args);
  if (num_runs == MOST_RUNS)
    return raised_format("RecursionError",
                         "%.80s: callees re-enter the virtual machine too deeply, expected at "
                         "most %d runs",
                         routine->name, MOST_RUNS);
  if (push(run, routine, NULL, -1) != 0 || admit_all(run, args, num_args) != 0) return -1;
  int status = run->vm->costs != NULL ? vm_execute_measured(run, result)
               : atomic_load_explicit(&run->vm->has_instrument, memory_order_relaxed)
                   ? vm_execute_instrumented(run, result)
                   : execute(run, result);
  if (status != 0) return -1;
  return vm_own(run->vm, result);
}

int vm_call_with(const struct vm_routine *routine, struct session *session, const dso_any *args,
                 int32_t num_args, dso_any *result) {
  dso_any values[ROOM_VALUES];
  struct vm_frame frames[ROOM_FRAMES];
  struct vm_run run = {.vm = routine->machine,
                       .values = values,
                       .frames = frames,
                       .values_capacity = ROOM_VALUES,
                       .frames_capacity = ROOM_FRAMES,
                       .pace = begin_pace(),
                       .room_values = values,
                       .room_frames = frames,
                       .session = session};
  num_runs++;
  vm_allocator_count_call(run.vm->allocators[run.vm->num_allocators - 1]); /* the CPU's */
  int status = start(&run, routine, args, num_args, result);
  num_runs--;
  thread_pace = run.pace;
  while (run.num_frames > 0) pop(&run);
  vm_stack_end_views(&run);
  if (run.values != values) free(run.values);
  if (run.frames != frames) free(run.frames);
  return status;
}

int vm_call(const struct vm_routine *routine, const dso_any *args, int32_t num_args,
            dso_any *result) {
  return vm_call_with(routine, NULL, args, num_args, result);
}
