/* The interpreter loop of machines that call an instrument around each call instruction. */
#include "vm/loop.h"

#include "abi/heap.h"

enum { ROOM = 20, SKIP_RUN = 1, NUM_FIRST = 4 };

/* A value as the instrument gets it: None for the machine and for storage, which no other code
 * reads. */
static dso_any shown_to_instrument(dso_any value) {
  if (value.type_index == DSO_OPAQUE_PTR || value.type_index == DSO_OBJECT)
    value = (dso_any){.type_index = DSO_NONE};
  return value;
}

/* The Function object that an instruction calls; None for built-in functions and the bytecode's. */
static dso_any callee_of(const struct vm *vm, int32_t row) {
  return vm->callees[row] != NULL ? any_of_object(vm->callees[row])
                                  : (dso_any){.type_index = DSO_NONE};
}

static int call_instrument(const struct vm_run *run, const dso_any *args, int32_t count,
                           int *is_skipped) {
  dso_any answer = {.type_index = DSO_NONE};
  if (vm_call_function(run->instrument, args, count, &answer) != 0) return -1;
  *is_skipped = answer.type_index == DSO_INT && answer.v_int64 == SKIP_RUN;
  any_release(&answer);
  return 0;
}

int vm_instrument(const struct vm_run *run, const struct vm_instruction *at, const dso_any *args,
                  const dso_any *value) {
  const struct vm *vm = run->vm;
  int32_t row = vm->rows[at - vm->instructions], count = NUM_FIRST + at->num_args;
  dso_any room[ROOM], *all = room;
  int is_skipped = 0;
  if (row < 0) return 0;
  if (count > ROOM && (all = heap_new((size_t)count * sizeof *all)) == NULL)
    return raised_format("OutOfMemoryError", "no memory for %d arguments", (int)count);
  all[0] = callee_of(vm, row);
  all[1] = (dso_any){.type_index = DSO_RAW_STR, .v_c_str = vm->routines[row].name};
  all[2] = (dso_any){.type_index = DSO_BOOL, .v_int64 = value == NULL};
  all[3] = value != NULL ? shown_to_instrument(*value) : (dso_any){.type_index = DSO_NONE};
  for (int32_t i = 0; i < at->num_args; i++) all[NUM_FIRST + i] = shown_to_instrument(args[i]);
  int status = call_instrument(run, all, count, &is_skipped);
  if (all != room) free(all);
  return status != 0 ? -1 : is_skipped && value == NULL;
}

/* ---- Setting it: a run keeps the instrument that it began with */

void vm_set_instrument(struct vm *vm, dso_function_object *instrument) {
  if (instrument != NULL) object_retain(&instrument->object);
  pthread_mutex_lock(&vm->lock);
  dso_function_object *former = vm->instrument;
  vm->instrument = instrument;
  atomic_store(&vm->has_instrument, instrument != NULL);
  pthread_mutex_unlock(&vm->lock);
  if (former != NULL) object_release(&former->object);
}

int vm_execute_instrumented(struct vm_run *run, dso_any *result) {
  struct vm *vm = run->vm;
  pthread_mutex_lock(&vm->lock);
  run->instrument = vm->instrument;
  if (run->instrument != NULL) object_retain(&run->instrument->object);
  pthread_mutex_unlock(&vm->lock);
  int status = vm_loop(run, result, NULL, run->instrument != NULL);
  if (run->instrument != NULL) object_release(&run->instrument->object);
  return status;
}
