/* Routines: calls, blocks that are skipped on a condition, and loops that end. */
#include <string.h>

#include "scope.h"

int find_kind(const struct scope *scope, enum kind kind) {
  unsigned first = scope_draw(scope, NUM_REGISTERS);
  for (unsigned i = 0; i < NUM_REGISTERS; i++) {
    int index = (int)((first + i) % NUM_REGISTERS);
    if (kind == ANYTHING || scope->known[index].kind == kind) return index;
  }
  return -1;
}

int are_alike(const struct value *a, const struct value *b) {
  if (a->kind == ANYTHING) return 1;
  if (a->kind != b->kind) return 0;
  if (a->kind == TENSOR || a->kind == SHAPE)
    return a->ndim == b->ndim && memcmp(&a->dtype, &b->dtype, sizeof a->dtype) == 0 &&
           memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims) == 0;
  return a->number == b->number && a->ndim == b->ndim && a->items == b->items &&
         a->routine == b->routine && a->num_saved == b->num_saved &&
         memcmp(&a->dtype, &b->dtype, sizeof a->dtype) == 0;
}

int find_alike(const struct scope *scope, const struct value *value) {
  unsigned first = scope_draw(scope, NUM_REGISTERS);
  for (unsigned i = 0; i < NUM_REGISTERS; i++) {
    int index = (int)((first + i) % NUM_REGISTERS);
    if (are_alike(value, &scope->known[index])) return index;
  }
  return -1;
}

int64_t draw_excess(const struct scope *scope) {
  return scope->program->is_wild && scope_draw(scope, 8) == 0;
}

int64_t draw_dst(const struct scope *scope) {
  unsigned first = scope_draw(scope, NUM_REGISTERS + 1);
  for (unsigned i = 0; i < NUM_REGISTERS && first < NUM_REGISTERS; i++)
    if (scope->writable >> (first + i) % NUM_REGISTERS & 1) return (first + i) % NUM_REGISTERS;
  return VM_VOID_REGISTER;
}

void call_named(struct scope *scope, const char *name, int64_t dst, const int64_t *args, int count,
                const struct value *result) {
  emit_call(scope->program, dst, function_named(scope->program, name), args, count);
  if (dst != VM_VOID_REGISTER) scope->known[dst] = *result;
}

/* ---- Anything that the verifier accepts */

static int64_t wild_argument(struct scope *scope) {
  static const int64_t numbers[] = {-1, 0, 1, 2, 3, 7, (int64_t)1 << 40};
  struct program *program = scope->program;
  switch (scope_draw(scope, 10)) {
    case 0: return immediate(numbers[scope_draw(scope, 7)]);
    case 1: return dtype_constant(program, draw_dtype(program->draws));
    case 2: return text_constant(program);
    case 3: return scope_draw(scope, 2) ? VM_VOID_REGISTER : VM_CONTEXT_REGISTER;
    case 4:
      if (scope->routine + 1 < NUM_ROUTINES) return function_at(NUM_ROUTINES - 1);
      return function_at(program->first_host);
    default: return scope_draw(scope, NUM_REGISTERS);
  }
}

static int count_wild(struct scope *scope, int function) {
  int32_t least, most;
  if (!vm_builtin_arity(scope->program->functions[function].name, &least, &most))
    return (int)scope_draw(scope, 4);
  int32_t further = most - least > 6 ? 6 : most - least;
  return least + (int)scope_draw(scope, (unsigned)further + 1);
}

static void wild_call(struct scope *scope) {
  static const struct value unknown = {.kind = ANYTHING};
  struct program *program = scope->program;
  unsigned num_callees = (unsigned)(program->num_functions - program->first_builtin);
  int function = program->first_builtin + (int)scope_draw(scope, num_callees);
  int count = count_wild(scope, function);
  int64_t args[64], dst = draw_dst(scope);
  for (int i = 0; i < count; i++) args[i] = wild_argument(scope);
  emit_call(program, dst, function, args, count);
  if (dst != VM_VOID_REGISTER) scope->known[dst] = unknown;
}

/* ---- Instructions */

static void one_call(struct scope *scope) {
  if (scope->program->is_wild && scope_draw(scope, 12) == 0) {
    wild_call(scope);
    return;
  }
  for (int tries = 0; tries < 8; tries++) {
    unsigned group = scope_draw(scope, 3);
    if (group == 0 && memory_calls[scope_draw(scope, NUM_MEMORY_CALLS)](scope)) return;
    if (group == 1 && shape_calls[scope_draw(scope, NUM_SHAPE_CALLS)](scope)) return;
    if (group == 2 && other_calls[scope_draw(scope, NUM_OTHER_CALLS)](scope)) return;
  }
}

static void instructions(struct scope *scope, unsigned count);

/* The values that a block may write, and the values that are unknown once it may have run. */
static struct scope begin_block(struct scope *scope, unsigned writable) {
  for (int i = 0; i < NUM_REGISTERS; i++)
    if (writable >> i & 1) scope->known[i] = (struct value){.kind = ANYTHING};
  struct scope block = *scope;
  block.depth++;
  block.writable = writable;
  return block;
}

static void skipped_block(struct scope *scope) {
  struct program *program = scope->program;
  int condition = find_kind(scope, scope_draw(scope, 2) ? INT : BOOL);
  if (condition < 0) return;
  int at = program->num_instructions;
  int64_t branch[] = {VM_IF, condition, 0};
  emit(program, branch, 3);
  struct scope block =
      begin_block(scope, scope->writable & scope_draw(scope, 1 << NUM_REGISTERS));
  instructions(&block, 1 + scope_draw(scope, 4));
  if (program->num_instructions == at + 1) /* a branch must lead to another instruction */
    call_named(&block, "vm.builtin.copy", VM_VOID_REGISTER, branch + 1, 1, NULL);
  program->words[program->offsets[at] + 2] = program->num_instructions - at;
}

static void loop(struct scope *scope) {
  struct program *program = scope->program;
  int64_t counter = draw_dst(scope);
  if (counter == VM_VOID_REGISTER) return;
  int is_down = scope_draw(scope, 2) == 0;
  const struct value number = {.kind = INT};
  int64_t start[] = {immediate(is_down ? 1 + scope_draw(scope, 4) : 1)}, again[] = {counter};
  call_named(scope, "vm.builtin.copy", counter, start, 1, &number);
  unsigned writable = scope->writable & ~(1u << counter) & scope_draw(scope, 1 << NUM_REGISTERS);
  struct scope block = begin_block(scope, writable);
  int head = program->num_instructions;
  instructions(&block, 1 + scope_draw(scope, 4));
  call_named(&block, "minus_one", counter, again, 1, &number);
  if (is_down) { /* until it is zero: a branch over a jump */
    int64_t branch[] = {VM_IF, counter, 2};
    emit(program, branch, 3);
    int64_t back[] = {VM_GOTO, head - program->num_instructions};
    emit(program, back, 2);
  } else { /* while it is zero, which it is once: a branch back */
    int64_t back[] = {VM_IF, counter, head - program->num_instructions};
    emit(program, back, 3);
  }
  for (int i = 0; i < NUM_REGISTERS; i++)
    if (writable >> i & 1) scope->known[i] = block.known[i];
}

static void instructions(struct scope *scope, unsigned count) {
  for (unsigned i = 0; i < count && !is_full(scope->program); i++) {
    unsigned kind = scope->depth < 2 ? scope_draw(scope, 16) : 16;
    if (kind == 0) loop(scope);
    else if (kind < 3) skipped_block(scope);
    else one_call(scope);
  }
}

/* ---- Routines */

/* f(n, x) = n == 0 ? x : f(n - 1, x) */
static void recursion(struct program *program, int index) {
  struct routine *self = &program->routines[index];
  int64_t branch[] = {VM_IF, 0, 4}, deeper[] = {0, 1}, back[] = {VM_RET, 1};
  self->num_params = 2;
  emit(program, branch, 3);
  emit_call(program, 0, function_named(program, "minus_one"), deeper, 1);
  emit_call(program, 1, index, deeper, 2);
  emit(program, back, 2);
  emit(program, back, 2);
}

static void routine(struct program *program, int index) {
  struct routine *self = &program->routines[index];
  struct scope scope = {.program = program, .routine = index, .writable = (1 << NUM_REGISTERS) - 1};
  for (int i = 0; i < self->num_params; i++) scope.known[i] = self->params[i];
  memory_calls[0](&scope);
  memory_calls[1](&scope);
  instructions(&scope, 4 + scope_draw(&scope, 24));
  int64_t back[] = {VM_RET, scope_draw(&scope, NUM_REGISTERS)};
  emit(program, back, 2);
}

void generate(struct program *program, const struct value *params, int num_params) {
  program->routines[0].num_params = num_params;
  memcpy(program->routines[0].params, params, (size_t)num_params * sizeof *params);
  for (int i = 0; i < NUM_ROUTINES; i++) {
    struct vm_function *function = &program->functions[i];
    function->start = program->num_instructions;
    if (i == NUM_ROUTINES - 1) recursion(program, i);
    else routine(program, i);
    function->end = program->num_instructions;
    function->num_args = function->num_params = program->routines[i].num_params;
    function->num_registers = i == NUM_ROUTINES - 1 ? 2 : NUM_REGISTERS;
  }
}
