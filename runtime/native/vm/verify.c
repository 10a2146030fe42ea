/* The verifier of bytecode. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "abi/heap.h"
#include "vm/code.h"

/* The limit for a compiled function, which has no instructions that would bound it. */
enum { MAX_COMPILED_REGISTERS = 1 << 16 };

/* The function and instruction that are being verified. */
struct scope {
  const struct vm_code *code;
  const struct vm_function *function;
  size_t instruction, word; /* the word is the instruction's first */
  struct vm_fault *fault;
};

static int refuse(struct vm_fault *fault, enum vm_table table, size_t index, const char *format,
                  ...) __attribute__((format(printf, 4, 5)));

static int refuse(struct vm_fault *fault, enum vm_table table, size_t index, const char *format,
                  ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(fault->text, sizeof fault->text, format, values);
  va_end(values);
  fault->table = table;
  fault->index = index;
  return -1;
}

/* Word `at` of the current instruction is invalid. */
static int refuse_word(const struct scope *scope, size_t at, const char *what, const char *expected,
                       int64_t found) {
  return refuse(scope->fault, VM_WORDS, scope->word + at,
                "%.80s: instruction %zu: %s, expected %s, found %" PRId64, scope->function->name,
                scope->instruction, what, expected, found);
}

static int refuse_range(const struct scope *scope, size_t at, const char *what, int64_t count,
                        int64_t found) {
  char expected[40];
  snprintf(expected, sizeof expected, "less than %" PRId64, count);
  return refuse_word(scope, at, what, expected, found);
}

/* ---- Words: the instructions follow each other without gaps */

/* The number of words of the instruction at `start`; 0 if the opcode is unknown or words are
 * missing. */
static size_t length_of(const struct vm_code *code, size_t start) {
  size_t left = code->num_words - start;
  int64_t opcode = vm_word(code->words, start);
  if (opcode == VM_RET || opcode == VM_GOTO) return left >= 2 ? 2 : 0;
  if (opcode == VM_IF) return left >= 3 ? 3 : 0;
  if (opcode != VM_CALL || left < 4) return 0;
  int64_t num_args = vm_word(code->words, start + 3);
  return num_args >= 0 && (uint64_t)num_args <= left - 4 ? 4 + (size_t)num_args : 0;
}

static int verify_offsets(const struct vm_code *code, struct vm_fault *fault) {
  size_t at = 0;
  for (size_t i = 0; i < code->num_instructions; i++) {
    int64_t offset = vm_word(code->offsets, i);
    if (offset < 0 || (uint64_t)offset != at)
      return refuse(fault, VM_OFFSETS, i,
                    "instruction %zu begins at word %" PRId64 ", expected %zu, the end of the "
                    "previous one",
                    i, offset, at);
    if (at >= code->num_words)
      return refuse(fault, VM_OFFSETS, i,
                    "instruction %zu begins at word %zu, expected less than %zu", i, at,
                    code->num_words);
    size_t length = length_of(code, at);
    if (length == 0)
      return refuse(fault, VM_WORDS, at,
                    "instruction %zu has opcode %" PRId64 ", expected 1 (call), 2 (ret), 3 (goto) "
                    "or 4 (if) with all of its words",
                    i, vm_word(code->words, at));
    at += length;
  }
  if (at == code->num_words) return 0;
  return refuse(fault, VM_WORDS, at, "%zu words after the last instruction, expected none",
                code->num_words - at);
}

/* ---- Functions: each instruction belongs to exactly one */

static size_t end_word(const struct vm_code *code, int64_t instruction) {
  return (size_t)instruction == code->num_instructions
             ? code->num_words
             : (size_t)vm_word(code->offsets, (size_t)instruction);
}

static int refuse_function(struct vm_fault *fault, size_t index, const struct vm_function *function,
                           const char *what, const char *expected, int64_t found) {
  return refuse(fault, VM_FUNCTIONS, index, "function '%.80s': %s, expected %s, found %" PRId64,
                function->name, what, expected, found);
}

/* Each word refers to at most one register, so a larger register file would only waste memory. */
static int64_t most_registers(const struct vm_code *code, const struct vm_function *function) {
  if (function->kind == VM_COMPILED) return MAX_COMPILED_REGISTERS;
  size_t words = end_word(code, function->end) - end_word(code, function->start);
  return function->num_args + (int64_t)words;
}

static int verify_sizes(const struct vm_code *code, size_t index, struct vm_fault *fault) {
  const struct vm_function *function = &code->functions[index];
  char expected[64];
  snprintf(expected, sizeof expected, "%" PRId64 ", one per parameter name", function->num_params);
  if (function->num_args != function->num_params)
    return refuse_function(fault, index, function, "number of arguments", expected,
                           function->num_args);
  int64_t least = function->num_args + (function->kind == VM_COMPILED);
  int64_t most = most_registers(code, function);
  snprintf(expected, sizeof expected, "%" PRId64 " to %" PRId64, least, most);
  if (function->num_registers < least || function->num_registers > most)
    return refuse_function(fault, index, function, "register file size", expected,
                           function->num_registers);
  return 0;
}

static int verify_range(const struct vm_code *code, size_t index, struct vm_fault *fault) {
  const struct vm_function *function = &code->functions[index];
  char expected[64];
  snprintf(expected, sizeof expected, "0 to %zu", code->num_instructions);
  if (function->start < 0 || (uint64_t)function->start > code->num_instructions)
    return refuse_function(fault, index, function, "first instruction", expected, function->start);
  snprintf(expected, sizeof expected, "%" PRId64 " to %zu", function->start + 1,
           code->num_instructions);
  if (function->end <= function->start || (uint64_t)function->end > code->num_instructions)
    return refuse_function(fault, index, function, "end of instructions", expected, function->end);
  return 0;
}

/* Mark the function's instructions. An instruction that is already marked belongs to two
 * functions. */
static int claim(const struct vm_code *code, size_t index, unsigned char *claimed,
                 struct vm_fault *fault) {
  const struct vm_function *function = &code->functions[index];
  for (int64_t i = function->start; i < function->end; i++) {
    if (claimed[i])
      return refuse_function(fault, index, function, "instructions", "none of another function", i);
    claimed[i] = 1;
  }
  return 0;
}

static int claim_all(const struct vm_code *code, unsigned char *claimed, struct vm_fault *fault) {
  for (size_t i = 0; i < code->num_functions; i++) {
    const struct vm_function *function = &code->functions[i];
    if (function->kind < VM_PACKED || function->kind > VM_COMPILED)
      return refuse_function(fault, i, function, "kind", "0 (packed), 1 (bytecode) or 2 (compiled)",
                             function->kind);
    if (function->kind == VM_BYTECODE &&
        (verify_range(code, i, fault) != 0 || claim(code, i, claimed, fault) != 0))
      return -1;
    if (function->kind != VM_PACKED && verify_sizes(code, i, fault) != 0) return -1;
  }
  for (size_t i = 0; i < code->num_instructions; i++)
    if (!claimed[i])
      return refuse(fault, VM_OFFSETS, i, "instruction %zu belongs to no function, expected one",
                    i);
  return 0;
}

/* ---- Instructions */

static int verify_register(const struct scope *scope, size_t at, const char *what) {
  int64_t found = vm_word(scope->code->words, scope->word + at);
  if (found >= 0 && found < scope->function->num_registers) return 0;
  return refuse_range(scope, at, what, scope->function->num_registers, found);
}

static int verify_argument(const struct scope *scope, size_t at) {
  int64_t argument = vm_word(scope->code->words, scope->word + at);
  int64_t value = vm_argument_value(argument), count;
  const char *what;
  switch (vm_argument_kind(argument)) {
    case VM_IMMEDIATE: return 0;
    case VM_REGISTER:
      if (argument == VM_VOID_REGISTER || argument == VM_CONTEXT_REGISTER) return 0;
      what = "register";
      count = scope->function->num_registers;
      break;
    case VM_CONSTANT:
      what = "constant";
      count = (int64_t)scope->code->num_constants;
      break;
    case VM_FUNCTION:
      what = "function";
      count = (int64_t)scope->code->num_functions;
      break;
    default:
      return refuse_word(scope, at, "kind of argument",
                         "0 (register), 1 (immediate), 2 (constant) or 3 (function)",
                         vm_argument_kind(argument));
  }
  return value >= 0 && value < count ? 0 : refuse_range(scope, at, what, count, value);
}

/* Bytecode functions and built-in functions have a known number of arguments. */
static int verify_count(const struct scope *scope, const struct vm_function *callee,
                        int64_t num_args) {
  int32_t least, most;
  char what[128], expected[64];
  if (callee->kind != VM_PACKED) {
    if (num_args == callee->num_args) return 0;
    snprintf(expected, sizeof expected, "%" PRId64, callee->num_args);
  } else {
    if (!vm_builtin_arity(callee->name, &least, &most)) return 0;
    if (num_args >= least && num_args <= most) return 0;
    const char *format = most == INT32_MAX ? "at least %d" : least < most ? "%d to %d" : "%d";
    snprintf(expected, sizeof expected, format, (int)least, (int)most);
  }
  snprintf(what, sizeof what, "number of arguments of '%.80s'", callee->name);
  return refuse_word(scope, 3, what, expected, num_args);
}

static int verify_call(const struct scope *scope) {
  const struct vm_code *code = scope->code;
  int64_t dst = vm_word(code->words, scope->word + 1);
  int64_t function = vm_word(code->words, scope->word + 2);
  int64_t num_args = vm_word(code->words, scope->word + 3);
  if (dst != VM_VOID_REGISTER && verify_register(scope, 1, "destination") != 0) return -1;
  if (function < 0 || (uint64_t)function >= code->num_functions)
    return refuse_range(scope, 2, "function", (int64_t)code->num_functions, function);
  if (verify_count(scope, &code->functions[function], num_args) != 0) return -1;
  for (int64_t i = 0; i < num_args; i++)
    if (verify_argument(scope, 4 + (size_t)i) != 0) return -1;
  return 0;
}

/* The offset is compared with both ends of the function, because the sum of index and offset could
 * wrap. */
static int verify_jump(const struct scope *scope, size_t at) {
  const struct vm_function *function = scope->function;
  int64_t offset = vm_word(scope->code->words, scope->word + at);
  int64_t here = (int64_t)scope->instruction;
  if (offset >= function->start - here && offset < function->end - here && offset != 0) return 0;
  char expected[96];
  snprintf(expected, sizeof expected,
           "an offset to another instruction from %" PRId64 " to %" PRId64, function->start,
           function->end - 1);
  return refuse_word(scope, at, "jump", expected, offset);
}

static int verify_return(const struct scope *scope) {
  if (vm_word(scope->code->words, scope->word + 1) == VM_VOID_REGISTER) return 0;
  return verify_register(scope, 1, "result");
}

static int verify_instruction(const struct scope *scope) {
  int is_last = (int64_t)scope->instruction == scope->function->end - 1;
  int64_t opcode = vm_word(scope->code->words, scope->word);
  if (is_last && (opcode == VM_CALL || opcode == VM_IF))
    return refuse_word(scope, 0, "the function's last opcode", "2 (ret) or 3 (goto)", opcode);
  switch (opcode) {
    case VM_CALL: return verify_call(scope);
    case VM_RET: return verify_return(scope);
    case VM_GOTO: return verify_jump(scope, 1);
    default: return verify_register(scope, 1, "condition") == 0 ? verify_jump(scope, 2) : -1;
  }
}

static int verify_function(const struct vm_code *code, const struct vm_function *function,
                           struct vm_fault *fault) {
  struct scope scope = {.code = code, .function = function, .fault = fault};
  for (int64_t i = function->start; i < function->end; i++) {
    scope.instruction = (size_t)i;
    scope.word = (size_t)vm_word(code->offsets, (size_t)i);
    if (verify_instruction(&scope) != 0) return -1;
  }
  return 0;
}

int vm_verify(const struct vm_code *code, struct vm_fault *fault) {
  if (verify_offsets(code, fault) != 0) return -1;
  unsigned char *claimed = heap_new_zeroed(code->num_instructions + 1, 1);
  if (claimed == NULL) return VM_NO_MEMORY;
  int status = claim_all(code, claimed, fault);
  free(claimed);
  for (size_t i = 0; status == 0 && i < code->num_functions; i++)
    if (code->functions[i].kind == VM_BYTECODE)
      status = verify_function(code, &code->functions[i], fault);
  return status;
}
