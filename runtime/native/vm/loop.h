/* The interpreter loop. It is compiled three times, for machines that measure their calls, for those
 * with an instrument, and for the others: run_measured.c, run_instrumented.c and run.c. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "abi/embedder.h"
#include "abi/raised.h"
#include "vm/stack.h"

/* run_measured.c, run_instrumented.c */
int vm_execute_measured(struct vm_run *run, dso_any *result);
int vm_execute_instrumented(struct vm_run *run, dso_any *result);

/* Call the instrument before a call instruction, or after it with its result. Returns 0, 1 to skip the
 * instruction, or -1 with an error raised (run_instrumented.c). */
int vm_instrument(const struct vm_run *run, const struct vm_instruction *at, const dso_any *args,
                  const dso_any *value);

/* ---- Polling, so that a run without end can be interrupted */

/* The most steps of work between two readings of the clock: about 100 us, if a step is a jump, and a
 * call 16 times as short. Calls may take any time: after one that moved the clock, each instruction
 * reads it, and then fewer and fewer do. */
enum { MOST_STEPS = 1 << 16, CALL_STEPS = MOST_STEPS / 16, BUILTIN_STEPS = MOST_STEPS / 64 };

/* Another thread may take 5 ms to release the GIL, so a run requests it at most once per period. */
enum { POLL_MS = 50 };

static __attribute__((noinline, cold)) int poll(struct vm_pace *pace) {
  int64_t before = pace->now;
  pace->now = embedder.now();
  pace->most = pace->now != before ? 1 : pace->most < MOST_STEPS ? 2 * pace->most : MOST_STEPS;
  pace->steps = pace->most;
  if (pace->now < pace->next_poll) return 0;
  pace->next_poll = pace->now + POLL_MS;
  return embedder.poll();
}

/* Begin an instruction of some steps. Returns 0, or -1 with the error of a signal raised. */
static inline int step(struct vm_run *run, int64_t steps) {
  return (run->pace.steps -= steps) > 0 ? 0 : poll(&run->pace);
}

/* ---- Calls */

static inline void store(dso_any *registers, int32_t dst, dso_any value) {
  dso_any old = value;
  if (dst >= 0) {
    old = registers[dst];
    registers[dst] = value;
  }
  any_release(&old);
}

/* Copy the arguments of a call, borrowed, to the values after the registers. */
static inline dso_any *gather(const struct vm *vm, const struct vm_routine *routine,
                              const struct vm_instruction *at, dso_any *registers) {
  const dso_any *tables[] = {registers, vm->values};
  const struct vm_operand *operands = vm->operands + at->operands;
  dso_any *args = registers + routine->num_registers;
  for (int32_t i = 0; i < at->num_args; i++)
    args[i] = tables[operands[i].is_value][operands[i].index];
  return args;
}

/* Push a frame for a routine. Its first arguments are in the current frame, its last ones are saved
 * in a closure. */
static int enter(struct vm_run *run, const struct vm_routine *routine, const dso_any *args,
                 int32_t num_args, const dso_any *saved, int32_t num_saved,
                 const struct vm_instruction *at) {
  size_t first = (size_t)(args - run->values);
  if (step(run, 1) != 0) return -1;
  if (num_args + num_saved != routine->num_args)
    return raised_format("TypeError", "%.80s: expected %d arguments, found %d", routine->name,
                         (int)routine->num_args, (int)(num_args + num_saved));
  if (push(run, routine, at + 1, at->dst) != 0) return -1;
  dso_any *registers = run->values + run->frames[run->num_frames - 1].registers;
  if (num_args > 0) memcpy(registers, run->values + first, (size_t)num_args * sizeof *args);
  if (num_saved > 0) memcpy(registers + num_args, saved, (size_t)num_saved * sizeof *saved);
  for (int32_t i = 0; i < num_args + num_saved; i++) any_retain(&registers[i]);
  return 0;
}

/* The closure in argument 1 if it belongs to this machine, else NULL. Argument 0 is the machine. */
static const struct vm_closure *own_closure(const struct vm *vm, const dso_any *args) {
  const struct vm_closure *closure =
      args[1].type_index == DSO_FUNCTION ? vm_closure_of(args[1].v_ptr) : NULL;
  return closure != NULL && closure->routine != NULL && closure->routine->machine == vm ? closure
                                                                                        : NULL;
}

static int call_foreign_closure(const struct vm_instruction *at, const dso_any *args,
                                dso_any *result) {
  if (args[1].type_index != DSO_FUNCTION)
    return raised_format("TypeError",
                         "vm.builtin.invoke_closure: argument 2, expected a function, "
                         "found a value of type index %d",
                         (int)args[1].type_index);
  return vm_call_function(args[1].v_ptr, args + 2, at->num_args - 2, result);
}

/* Return 1 if a condition is zero, 0 if not, or -1 with TypeError raised. */
static inline int is_zero(const struct vm_routine *routine, const dso_any *value) {
  if (value->type_index == DSO_BOOL || value->type_index == DSO_INT) return value->v_int64 == 0;
  return raised_format("TypeError",
                       "%.80s: condition, expected an int or bool, found a value of type index %d",
                       routine->name, (int)value->type_index);
}

/* ---- The instrument */

static inline int is_call(const struct vm_instruction *at) {
  return at->operation <= VM_RUN_CLOSURE;
}

/* Tell the instrument the result of a call, which is released on failure. */
static inline int tell(const struct vm_run *run, const struct vm_instruction *at,
                       const dso_any *args, const dso_any *value) {
  if (vm_instrument(run, at, args, value) >= 0) return 0;
  any_release(value);
  return -1;
}

/* ---- The loop. Calls add to `costs` unless it is NULL. A frame's pointers are read again after each push and pop, which may move the
 * stack. */

static inline __attribute__((always_inline)) int
vm_loop(struct vm_run *run, dso_any *result, struct vm_cost *costs, int is_instrumented) {
  const struct vm *vm = run->vm;
  int64_t last = costs != NULL ? vm_now() : 0;
  const struct vm_routine *routine = run->frames[0].routine;
  const struct vm_instruction *at = routine->first;
  const struct vm_closure *closure;
  dso_any *registers = run->values, *args, value;
  int condition, skips;
  for (;;) {
    if (is_instrumented && is_call(at)) {
      args = gather(vm, routine, at, registers);
      if ((skips = vm_instrument(run, at, args, NULL)) < 0) return -1;
      if (skips) {
        store(registers, at++->dst, (dso_any){.type_index = DSO_NONE});
        continue;
      }
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) VM_RETURN ends the first frame */
    switch (at->operation) {
      case VM_RUN_FUNCTION:
        if (step(run, CALL_STEPS) != 0) return -1;
        args = gather(vm, routine, at, registers);
        value = (dso_any){.type_index = DSO_NONE};
        if (vm_call_function(at->function, args, at->num_args, &value) != 0) return -1;
        if (is_instrumented && tell(run, at, args, &value) != 0) return -1;
        if (costs != NULL) vm_cost_add(&costs[at - vm->instructions], &last);
        store(registers, at++->dst, value);
        continue;
      case VM_RUN_BUILTIN:
        if (step(run, BUILTIN_STEPS) != 0) return -1;
        args = gather(vm, routine, at, registers);
        value = (dso_any){.type_index = DSO_NONE};
        if (at->builtin(run, args, at->num_args, &value) != 0) return -1;
        if (is_instrumented && tell(run, at, args, &value) != 0) return -1;
        if (costs != NULL) vm_cost_add(&costs[at - vm->instructions], &last);
        store(registers, at++->dst, value);
        continue;
      case VM_RUN_CLOSURE:
        args = gather(vm, routine, at, registers);
        closure = own_closure(vm, args);
        if (closure == NULL) {
          if (step(run, CALL_STEPS) != 0) return -1;
          value = (dso_any){.type_index = DSO_NONE};
          if (call_foreign_closure(at, args, &value) != 0) return -1;
          if (is_instrumented && tell(run, at, args, &value) != 0) return -1;
          store(registers, at++->dst, value);
          continue;
        }
        if (enter(run, closure->routine, args + 2, at->num_args - 2, closure->saved,
                  closure->num_saved, at) != 0)
          return -1;
        break;
      case VM_RUN_ROUTINE:
        args = gather(vm, routine, at, registers);
        if (enter(run, at->routine, args, at->num_args, NULL, 0, at) != 0) return -1;
        break;
      case VM_MAKE_CLOSURE:
        value.v_ptr = vm_closure_new(at->routine);
        if (value.v_ptr == NULL) return -1;
        store(registers, at++->dst, any_of_object(value.v_ptr));
        continue;
      case VM_JUMP_BACK:
        if (step(run, 1) != 0) return -1;
        at = at->target;
        continue;
      case VM_JUMP: at = at->target; continue;
      case VM_JUMP_BACK_IF_ZERO:
        if (step(run, 1) != 0) return -1;
        if ((condition = is_zero(routine, &registers[at->dst])) < 0) return -1;
        at = condition ? at->target : at + 1;
        continue;
      case VM_JUMP_IF_ZERO:
        if ((condition = is_zero(routine, &registers[at->dst])) < 0) return -1;
        at = condition ? at->target : at + 1;
        continue;
      case VM_RETURN: {
        struct vm_frame ended = run->frames[run->num_frames - 1];
        value = (dso_any){.type_index = DSO_NONE};
        if (at->dst >= 0) {
          value = registers[at->dst];
          registers[at->dst].type_index = DSO_NONE;
        }
        pop(run);
        if (run->num_frames == 0) {
          *result = value;
          return 0;
        }
        registers = run->values + run->frames[run->num_frames - 1].registers;
        routine = run->frames[run->num_frames - 1].routine;
        if (is_instrumented &&
            tell(run, ended.next - 1, gather(vm, routine, ended.next - 1, registers), &value) != 0)
          return -1;
        store(registers, ended.dst, value);
        at = ended.next;
        continue;
      }
    }
    const struct vm_frame *entered = &run->frames[run->num_frames - 1]; /* after a push */
    registers = run->values + entered->registers;
    routine = entered->routine;
    at = routine->first;
  }
}
