/* libFuzzer target: programs of bytecode that verify and run, over the virtual machine alone.
 *
 * The input draws programs whose values are known well enough that most run to their end; a third of
 * them calls some functions with any arguments. Constants are read-only memory, and all other memory
 * ends at its last byte. Arguments and results are read, written unless read-only, and copied. Some
 * programs run out of memory. */
#include <stdio.h>
#include <stdlib.h>

#include "bytecode/program.h"
#include "abi/heap.h"
#include "abi/embedder.h"
#include "abi/raised.h"
#include "module/global.h"

enum { PROGRAMS = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static struct {
  unsigned long programs, refused, raised, ended;
} counts;

__attribute__((destructor)) static void print_counts(void) {
  fprintf(stderr, "bytecode: %lu programs: %lu ran to their end, %lu raised, %lu refused\n",
          counts.programs, counts.ended, counts.raised, counts.refused);
}

/* A run whose loops do not end is ended. */
static int give_up(void) { return raised_format("RuntimeError", "a run of too many steps"); }

static int print_nothing(const char *text, size_t nbytes) {
  (void)text, (void)nbytes;
  return 0;
}

static void fail_some_allocation(struct draws *draws) {
  if (draw(draws, 16) == 0) (void)heap_fail_at(1 + (long)draw(draws, 40));
}

static struct vm *make_machine(const struct program *program) {
  dso_object *callees[MOST_FUNCTIONS] = {NULL};
  const DLDevice cpu = {.device_type = 1, .device_id = 0};
  const struct vm_code code = code_of(program);
  struct vm_fault fault;
  if (vm_verify(&code, &fault) != 0) return NULL;
  for (int i = 0; host_names[i] != NULL; i++)
    callees[program->first_host + i] = &host_functions[i]->object;
  for (int i = 0; built_in_functions[i].name != NULL; i++)
    callees[program->first_global + i] = &built_in_functions[i].function->object;
  const struct vm_parts parts = {program->constants, program->weights, callees};
  struct vm *vm = vm_new(&code, &parts, &cpu, draw(program->draws, 2));
  if (vm != NULL && draw(program->draws, 4) == 0) (void)vm_measure(vm);
  return vm;
}

/* Twice, since the second run finds the memory of the first. */
static int run(struct vm *vm, const dso_any *args, int num_args) {
  int status = 0;
  for (int i = 0; i < 2 && status == 0; i++) {
    dso_any result = {.type_index = DSO_NONE};
    host_begin_run();
    status = vm_call(&vm->routines[0], args, num_args, &result);
    if (status == 0) touch(&result);
    any_release(&result);
  }
  return status;
}

static void run_program(struct draws *draws) {
  static struct program program;
  struct value params[MOST_SIGNATURE] = {{0}};
  dso_any args[MOST_SIGNATURE];
  begin_program(&program, draws);
  int num_args = (int)draw(draws, MOST_SIGNATURE + 1);
  for (int i = 0; i < num_args; i++) args[i] = draw_argument(draws, &params[i], 0);
  generate(&program, params, num_args);
  fail_some_allocation(draws);
  counts.programs++;
  struct vm *vm = make_machine(&program);
  if (vm == NULL) counts.refused++;
  else if (run(vm, args, num_args) != 0) counts.raised++;
  else counts.ended++;
  (void)heap_fail_at(0);
  if (vm != NULL) vm_release(vm);
  end_program(&program);
  clear_tensor_cache();
  for (int i = 0; i < num_args; i++) any_release(&args[i]);
  free_arguments();
  raised_forget();
}

/* Some programs for each input: the fuzzer's own work on an input takes longer than they do. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  struct draws draws = {.data = data, .left = nbytes, .seed = nbytes};
  for (size_t i = 0; i < nbytes; i++) draws.seed = draws.seed * 1099511628211u ^ data[i];
  embedder.poll = give_up;
  embedder.print = print_nothing;
  for (int i = 0; i < PROGRAMS; i++) run_program(&draws);
  return 0;
}
