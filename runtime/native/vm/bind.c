/* Binding verified bytecode: functions are looked up, operands are resolved, jumps become
 * pointers. */
#include <stdlib.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "vm/builtin.h"

/* Indices are 31 bits wide (struct vm_operand). */
enum { MOST_WORDS = 1 << 28 };

/* The two values after the constants, for the special registers. */
enum { NO_VALUE, CONTEXT, NUM_SPECIAL };

struct binder {
  const struct vm_code *code;
  const struct vm_parts *parts;
  struct vm *vm;
  int64_t weight_row; /* of dso.weight in the table of functions, or -1 */
  uint32_t *places;   /* by instruction of the code: its index in the machine */
  uint32_t *weights;  /* by constant: the index of its weight in the machine's values, or 0 */
  uint32_t num_instructions, num_operands;
};

/* ---- Sizes. If a function is passed as an argument, an added instruction makes a closure before
 * the call, in a register after the function's registers. */

static int is_routine(const struct vm_code *code, int64_t argument) {
  return vm_argument_kind(argument) == VM_FUNCTION &&
         code->functions[vm_argument_value(argument)].kind != VM_PACKED;
}

static int64_t count_closures(const struct vm_code *code, size_t word, int64_t num_args) {
  int64_t count = 0;
  for (int64_t i = 0; i < num_args; i++)
    count += is_routine(code, vm_word(code->words, word + 4 + (size_t)i));
  return count;
}

static int allocate(struct binder *binder) {
  const struct vm_code *code = binder->code;
  struct vm *vm = binder->vm;
  size_t num_args = 0, num_closures = 0;
  for (size_t i = 0; i < code->num_instructions; i++) {
    size_t word = (size_t)vm_word(code->offsets, i);
    if (vm_word(code->words, word) != VM_CALL) continue;
    int64_t count = vm_word(code->words, word + 3);
    num_args += (size_t)count;
    num_closures += (size_t)count_closures(code, word, count);
  }
  vm->routines = heap_new_zeroed(code->num_functions + 1, sizeof *vm->routines);
  vm->callees = heap_new_zeroed(code->num_functions + 1, sizeof *vm->callees);
  vm->num_instructions = code->num_instructions + num_closures;
  vm->instructions = heap_new_zeroed(vm->num_instructions + 1, sizeof *vm->instructions);
  vm->rows = heap_new(vm->num_instructions * sizeof *vm->rows + 1);
  vm->operands = heap_new_zeroed(num_args + 1, sizeof *vm->operands);
  vm->values = heap_new_zeroed(code->num_constants + vm_count_weights(code, binder->parts) +
                                   NUM_SPECIAL + num_args,
                               sizeof *vm->values);
  binder->weights = heap_new_zeroed(code->num_constants + 1, sizeof *binder->weights);
  binder->places = heap_new_zeroed(code->num_instructions + 1, sizeof *binder->places);
  return vm->routines != NULL && vm->callees != NULL && vm->instructions != NULL &&
                 vm->rows != NULL && vm->operands != NULL && vm->values != NULL &&
                 binder->places != NULL && binder->weights != NULL
             ? 0
             : vm_out_of_memory();
}

static int copy_names(struct binder *binder) {
  const struct vm_code *code = binder->code;
  size_t nbytes = 1;
  for (size_t i = 0; i < code->num_functions; i++) nbytes += strlen(code->functions[i].name) + 1;
  char *names = binder->vm->names = heap_new(nbytes);
  if (names == NULL) return vm_out_of_memory();
  for (size_t i = 0; i < code->num_functions; i++) {
    size_t size = strlen(code->functions[i].name) + 1;
    memcpy(names, code->functions[i].name, size);
    binder->vm->routines[i].name = names;
    names += size;
  }
  return 0;
}

/* ---- Constants */

static int bind_values(struct binder *binder) {
  const dso_any *constants = binder->parts->constants;
  struct vm *vm = binder->vm;
  for (; vm->num_values < binder->code->num_constants; vm->num_values++)
    if (vm_bind_constant(vm, &constants[vm->num_values], &vm->values[vm->num_values]) != 0)
      return -1;
  vm->values[vm->num_values + NO_VALUE].type_index = DSO_NONE;
  vm->values[vm->num_values + CONTEXT].type_index = DSO_OPAQUE_PTR;
  vm->num_values += NUM_SPECIAL;
  return vm_bind_weights(vm, binder->code, binder->parts, binder->weights);
}

/* ---- Calls */

static struct vm_operand operand_of_value(struct vm *vm, dso_any value) {
  vm->values[vm->num_values] = value;
  any_retain(&value);
  return (struct vm_operand){.is_value = 1, .index = (uint32_t)vm->num_values++ & 0x7fffffff};
}

static struct vm_operand operand_at(int64_t index, uint32_t is_value) {
  return (struct vm_operand){.is_value = is_value & 1, .index = (uint32_t)index & 0x7fffffff};
}

static struct vm_instruction *add(struct binder *binder, enum vm_operation operation, int64_t dst) {
  binder->vm->rows[binder->num_instructions] = -1;
  struct vm_instruction *made = &binder->vm->instructions[binder->num_instructions++];
  *made = (struct vm_instruction){.operation = operation,
                                  .dst = dst == VM_VOID_REGISTER ? -1 : (int32_t)dst};
  return made;
}

/* Pass a function as an argument. A function of the bytecode becomes a closure at run time. */
static int bind_function_argument(struct binder *binder, struct vm_routine *routine, int64_t index,
                                  struct vm_operand *operand) {
  struct vm *vm = binder->vm;
  if (binder->code->functions[index].kind != VM_PACKED) {
    add(binder, VM_MAKE_CLOSURE, routine->num_registers)->routine = &vm->routines[index];
    *operand = operand_at(routine->num_registers++, 0);
    return 0;
  }
  if (vm->callees[index] == NULL)
    return raised_format("TypeError",
                         "%.80s: passes the built-in function '%.80s' as an argument, expected "
                         "another function",
                         routine->name, vm->routines[index].name);
  *operand = operand_of_value(vm, any_of_object(vm->callees[index]));
  return 0;
}

static int bind_argument(struct binder *binder, struct vm_routine *routine, int64_t argument,
                         struct vm_operand *operand) {
  int64_t value = vm_argument_value(argument), specials = (int64_t)binder->code->num_constants;
  switch (vm_argument_kind(argument)) {
    case VM_REGISTER:
      if (argument == VM_VOID_REGISTER) *operand = operand_at(specials + NO_VALUE, 1);
      else if (argument == VM_CONTEXT_REGISTER) *operand = operand_at(specials + CONTEXT, 1);
      else *operand = operand_at(value, 0);
      return 0;
    case VM_IMMEDIATE:
      *operand = operand_of_value(binder->vm, (dso_any){.type_index = DSO_INT, .v_int64 = value});
      return 0;
    case VM_CONSTANT: *operand = operand_at(value, 1); return 0;
    default: return bind_function_argument(binder, routine, value, operand);
  }
}

/* Pass a weight itself instead of its name, and copy the reference. Returns 0 if the argument is not
 * the name of one. */
static int bind_weight(const struct binder *binder, struct vm_instruction *call) {
  struct vm_operand *argument = &binder->vm->operands[call->operands];
  if (!argument->is_value || argument->index >= binder->code->num_constants ||
      binder->weights[argument->index] == 0)
    return 0;
  argument->index = binder->weights[argument->index] & 0x7fffffff;
  call->operation = VM_RUN_BUILTIN;
  call->builtin = vm_copy;
  return 1;
}

static void bind_callee(const struct binder *binder, int64_t function,
                        struct vm_instruction *call) {
  struct vm *vm = binder->vm;
  const char *name = binder->code->functions[function].name;
  vm->rows[call - vm->instructions] = (int32_t)function;
  if (binder->code->functions[function].kind != VM_PACKED) {
    call->operation = VM_RUN_ROUTINE;
    call->routine = &vm->routines[function];
  } else if (vm->callees[function] != NULL) {
    call->operation = VM_RUN_FUNCTION;
    call->function = (dso_function_object *)(void *)vm->callees[function];
  } else if (strcmp(name, VM_INVOKE_CLOSURE) == 0) {
    call->operation = VM_RUN_CLOSURE;
  } else if (function != binder->weight_row || !bind_weight(binder, call)) {
    call->operation = VM_RUN_BUILTIN;
    call->builtin = vm_find_builtin(name)->call;
  }
}

static int bind_call(struct binder *binder, struct vm_routine *routine, size_t word) {
  const unsigned char *words = binder->code->words;
  int64_t num_args = vm_word(words, word + 3);
  uint32_t first = binder->num_operands;
  binder->num_operands += (uint32_t)num_args;
  for (int64_t i = 0; i < num_args; i++)
    if (bind_argument(binder, routine, vm_word(words, word + 4 + (size_t)i),
                      &binder->vm->operands[first + i]) != 0)
      return -1;
  struct vm_instruction *call = add(binder, VM_RUN_BUILTIN, vm_word(words, word + 1));
  call->num_args = (int32_t)num_args;
  call->operands = first;
  bind_callee(binder, vm_word(words, word + 2), call);
  if (num_args > routine->most_args) routine->most_args = (int32_t)num_args;
  return 0;
}

/* ---- Instructions. Jumps are resolved after all instructions of a function have a place. */

static int bind_instruction(struct binder *binder, struct vm_routine *routine, int64_t index) {
  const unsigned char *words = binder->code->words;
  size_t word = (size_t)vm_word(binder->code->offsets, (size_t)index);
  binder->places[index] = binder->num_instructions;
  switch (vm_word(words, word)) {
    case VM_CALL: return bind_call(binder, routine, word);
    case VM_RET: add(binder, VM_RETURN, vm_word(words, word + 1)); return 0;
    case VM_GOTO: add(binder, VM_JUMP, 0); return 0;
    default: add(binder, VM_JUMP_IF_ZERO, vm_word(words, word + 1)); return 0;
  }
}

static void aim(const struct binder *binder, int64_t index) {
  const unsigned char *words = binder->code->words;
  size_t word = (size_t)vm_word(binder->code->offsets, (size_t)index);
  int64_t opcode = vm_word(words, word);
  if (opcode != VM_GOTO && opcode != VM_IF) return;
  int64_t target = index + vm_word(words, word + (opcode == VM_GOTO ? 1 : 2));
  struct vm_instruction *instructions = binder->vm->instructions;
  struct vm_instruction *jump = &instructions[binder->places[index]];
  jump->target = &instructions[binder->places[target]];
  if (jump->target <= jump)
    jump->operation = opcode == VM_GOTO ? VM_JUMP_BACK : VM_JUMP_BACK_IF_ZERO;
}

static int bind_routine(struct binder *binder, size_t index) {
  const struct vm_function *function = &binder->code->functions[index];
  struct vm_routine *routine = &binder->vm->routines[index];
  routine->machine = binder->vm;
  if (function->kind == VM_COMPILED)
    return raised_format("TypeError",
                         "'%.80s' is a compiled function, expected bytecode; build "
                         "the model with exec_mode=\"bytecode\"",
                         function->name);
  routine->num_args = (int32_t)function->num_args;
  routine->num_registers = (int32_t)function->num_registers;
  routine->first = &binder->vm->instructions[binder->num_instructions];
  for (int64_t i = function->start; i < function->end; i++)
    if (bind_instruction(binder, routine, i) != 0) return -1;
  for (int64_t i = function->start; i < function->end; i++) aim(binder, i);
  return 0;
}

static int bind_callees(struct binder *binder) {
  dso_object *const *callees = binder->parts->callees;
  const struct vm_code *code = binder->code;
  for (size_t i = 0; i < code->num_functions; i++) {
    if (code->functions[i].kind != VM_PACKED) continue;
    if (callees[i] == NULL && vm_find_builtin(code->functions[i].name) == NULL)
      return raised_format("FunctionNotFoundError",
                           "no function '%.80s', which the bytecode calls; register it with "
                           "runtime.register_func or dso_register_function",
                           code->functions[i].name);
    binder->vm->callees[i] = callees[i];
    if (callees[i] != NULL) object_retain(callees[i]);
  }
  return 0;
}

static int bind_code(struct binder *binder) {
  const struct vm_code *code = binder->code;
  size_t size = code->num_words + code->num_constants + code->num_functions;
  if (size > MOST_WORDS)
    return raised_format("ValueError", "%zu words, constants and functions, expected at most %d",
                         size, MOST_WORDS);
  if (allocate(binder) != 0 || copy_names(binder) != 0) return -1;
  binder->vm->num_functions = code->num_functions;
  if (bind_callees(binder) != 0 || bind_values(binder) != 0) return -1;
  for (size_t i = 0; i < code->num_functions; i++)
    if (code->functions[i].kind != VM_PACKED && bind_routine(binder, i) != 0) return -1;
  return 0;
}

int vm_bind(struct vm *vm, const struct vm_code *code, const struct vm_parts *parts) {
  struct binder binder = {.code = code, .parts = parts, .vm = vm};
  binder.weight_row = vm_weight_row(code);
  vm->alignment = VM_ALIGNMENT;
  for (size_t i = 0; i < code->num_functions; i++)
    if (strcmp(code->functions[i].name, VM_ANY_ALIGNMENT) == 0) vm->alignment = VM_LEAST_ALIGNMENT;
  int status = bind_code(&binder);
  free(binder.places);
  free(binder.weights);
  return status;
}
