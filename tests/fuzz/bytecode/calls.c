/* Calls on tuples, functions and plain values. */
#include <string.h>

#include "scope.h"

static const struct value unknown = {.kind = ANYTHING};

static int null_value(struct scope *scope) {
  static const struct value nothing = {.kind = NOTHING};
  int64_t none = 0;
  call_named(scope, "vm.builtin.null_value", draw_dst(scope), &none, 0, &nothing);
  return 1;
}

static int copy(struct scope *scope) {
  int64_t index = scope_draw(scope, NUM_REGISTERS);
  call_named(scope, "vm.builtin.copy", draw_dst(scope), &index, 1, &scope->known[index]);
  return 1;
}

/* A constant of a plain kind, or an immediate. */
static int plain(struct scope *scope) {
  struct program *program = scope->program;
  struct value known = {.kind = INT};
  int64_t arg;
  switch (scope_draw(scope, 5)) {
    case 0: arg = immediate(scope_draw(scope, 5)); break;
    case 1: arg = add_constant(program, (dso_any){.type_index = DSO_INT, .v_int64 = -1}); break;
    case 2:
      known.kind = FLOAT;
      arg = add_constant(program, (dso_any){.type_index = DSO_FLOAT, .v_float64 = 1.5});
      break;
    case 3:
      known.kind = DTYPE;
      known.dtype = draw_dtype(program->draws);
      arg = dtype_constant(program, known.dtype);
      break;
    default:
      arg = text_constant(program);
      known.kind = arg == VM_VOID_REGISTER ? NOTHING : TEXT;
  }
  call_named(scope, "vm.builtin.copy", draw_dst(scope), &arg, 1, &known);
  return 1;
}

/* ---- Tuples: items may be any registers, and one of them twice */

static int make_tuple(struct scope *scope) {
  struct program *program = scope->program;
  struct value tuple = {.kind = TUPLE, .ndim = scope_draw(scope, MOST_TUPLE + 1),
                        .items = program->nodes + program->num_nodes};
  int64_t args[MOST_TUPLE];
  for (int64_t i = 0; i < tuple.ndim; i++) {
    args[i] = i > 0 && scope_draw(scope, 4) == 0 ? args[i - 1] : scope_draw(scope, NUM_REGISTERS);
    program->nodes[program->num_nodes++] = scope->known[args[i]];
  }
  call_named(scope, "vm.builtin.make_tuple", draw_dst(scope), args, (int)tuple.ndim, &tuple);
  return 1;
}

static int tuple_getitem(struct scope *scope) {
  int index = find_kind(scope, TUPLE);
  if (index < 0 || scope->known[index].ndim == 0) return 0;
  int64_t item = scope_draw(scope, (unsigned)scope->known[index].ndim);
  int64_t args[] = {index, immediate(item)};
  const struct value known = scope->known[index].items[item];
  call_named(scope, "vm.builtin.tuple_getitem", draw_dst(scope), args, 2, &known);
  return 1;
}

/* The item is not known any more, in this and in all that share it: rarely. */
static int tuple_reset_item(struct scope *scope) {
  int index = find_kind(scope, TUPLE);
  if (scope_draw(scope, 3) != 0 || index < 0 || scope->known[index].ndim == 0) return 0;
  int64_t item = scope_draw(scope, (unsigned)scope->known[index].ndim);
  int64_t args[] = {index, immediate(item)};
  ((struct value *)(uintptr_t)scope->known[index].items)[item] = unknown;
  call_named(scope, "vm.builtin.tuple_reset_item", VM_VOID_REGISTER, args, 2, NULL);
  return 1;
}

/* ---- Checks */

static int check_tuple_info(struct scope *scope) {
  int index = find_kind(scope, TUPLE);
  if (index < 0) return 0;
  int64_t args[] = {index, immediate(scope_draw(scope, 2) ? scope->known[index].ndim : -1),
                    text_constant(scope->program)};
  call_named(scope, "vm.builtin.check_tuple_info", VM_VOID_REGISTER, args, 3, NULL);
  return 1;
}

static int check_prim_value_info(struct scope *scope) {
  static const enum kind kinds[] = {INT, FLOAT, BOOL};
  static const DLDataType dtypes[] = {{0, 64, 1}, {2, 64, 1}, {6, 8, 1}};
  unsigned kind = scope_draw(scope, 3);
  int index = find_kind(scope, kinds[kind]);
  if (index < 0) return 0;
  int64_t args[] = {index, dtype_constant(scope->program, dtypes[kind]),
                    text_constant(scope->program)};
  call_named(scope, "vm.builtin.check_prim_value_info", VM_VOID_REGISTER, args, 3, NULL);
  return 1;
}

static int check_other_info(struct scope *scope) {
  int is_text = (int)scope_draw(scope, 2), index = find_kind(scope, is_text ? TEXT : CLOSURE);
  if (index < 0) return 0;
  int64_t args[] = {index, text_constant(scope->program)};
  call_named(scope, is_text ? "vm.builtin.check_string_info" : "vm.builtin.check_func_info",
             VM_VOID_REGISTER, args, 2, NULL);
  return 1;
}

/* ---- Routines and closures. A routine's signature is what it is first called with. */

static int callee_of(const struct scope *scope) {
  int first = scope->routine + 1, count = NUM_ROUTINES - 1 - first;
  return count > 0 ? first + (int)scope_draw(scope, (unsigned)count) : -1;
}

/* Registers for parameters from `first` to before `end`; 0 where there are none alike. */
static int fill(const struct scope *scope, const struct routine *routine, int first, int end,
                int64_t *args) {
  for (int i = first; i < end; i++)
    if ((args[i - first] = find_alike(scope, &routine->params[i])) < 0) return 0;
  return 1;
}

static void settle(struct scope *scope, struct routine *routine) {
  if (routine->is_known) return;
  routine->is_known = 1;
  routine->num_params = (int)scope_draw(scope, MOST_SIGNATURE + 1);
  for (int i = 0; i < routine->num_params; i++)
    routine->params[i] = scope->known[scope_draw(scope, NUM_REGISTERS)];
}

static int call_routine(struct scope *scope) {
  int callee = callee_of(scope);
  int64_t args[MOST_SIGNATURE];
  if (callee < 0) return 0;
  struct routine *routine = &scope->program->routines[callee];
  settle(scope, routine);
  if (!fill(scope, routine, 0, routine->num_params, args)) return 0;
  int64_t dst = draw_dst(scope);
  emit_call(scope->program, dst, callee, args, routine->num_params);
  if (dst != VM_VOID_REGISTER) scope->known[dst] = unknown;
  return 1;
}

static int call_recursion(struct scope *scope) {
  int64_t dst = draw_dst(scope), index = scope_draw(scope, NUM_REGISTERS);
  int64_t args[] = {immediate(scope_draw(scope, 40)), index};
  struct value known = scope->known[index];
  emit_call(scope->program, dst, NUM_ROUTINES - 1, args, 2);
  if (dst != VM_VOID_REGISTER) scope->known[dst] = known;
  return 1;
}

/* With the last arguments of a routine, or any of a function of the host. */
static int make_closure(struct scope *scope) {
  struct program *program = scope->program;
  struct value closure = {.kind = CLOSURE, .routine = callee_of(scope)};
  int64_t args[1 + MOST_SIGNATURE];
  if (closure.routine < 0) {
    args[0] = function_at(program->first_host);
    closure.num_saved = (int)scope_draw(scope, 3);
    for (int i = 0; i < closure.num_saved; i++) args[1 + i] = scope_draw(scope, NUM_REGISTERS);
  } else {
    struct routine *routine = &program->routines[closure.routine];
    settle(scope, routine);
    int end = routine->num_params;
    closure.num_saved = (int)scope_draw(scope, (unsigned)end + 1);
    if (!fill(scope, routine, end - closure.num_saved, end, args + 1)) return 0;
    args[0] = function_at(closure.routine);
  }
  call_named(scope, "vm.builtin.make_closure", draw_dst(scope), args, 1 + closure.num_saved,
             &closure);
  return 1;
}

/* Arguments that a closure takes: how many, or -1. */
static int fill_open(struct scope *scope, const struct value *closure, int64_t *args) {
  if (closure->routine < 0) {
    for (int i = 0; i < 2; i++) args[i] = scope_draw(scope, NUM_REGISTERS);
    return (int)scope_draw(scope, 3);
  }
  const struct routine *routine = &scope->program->routines[closure->routine];
  int count = routine->num_params - closure->num_saved;
  return fill(scope, routine, 0, count, args) ? count : -1;
}

/* By the loop, by the host, or with the extents of a shape after its arguments. */
static int invoke(struct scope *scope) {
  static const char *const names[] = {"vm.builtin.invoke_closure", "call",
                                      "vm.builtin.call_tir_dyn"};
  unsigned how = scope_draw(scope, 3);
  int index = find_kind(scope, CLOSURE);
  int64_t args[3 + MOST_SIGNATURE] = {VM_CONTEXT_REGISTER, index}, extents[] = {2, 3};
  if (index < 0) return 0;
  const struct value closure = scope->known[index];
  int64_t *first = how == 0 ? args : args + 1;
  int count = fill_open(scope, &closure, first + (how == 0 ? 2 : 1));
  if (count < 0) return 0;
  count += how == 0 ? 2 : 1;
  if (how == 2)
    first[count++] = shape_constant(scope->program, closure.routine < 0 ? 2 : 0, extents);
  call_named(scope, names[how], draw_dst(scope), first, count, &unknown);
  return 1;
}

static int echo(struct scope *scope) {
  int64_t args[3], dst = draw_dst(scope);
  int count = (int)scope_draw(scope, 4);
  for (int i = 0; i < count; i++) args[i] = scope_draw(scope, NUM_REGISTERS);
  call_named(scope, "echo", dst, args, count, &unknown);
  return 1;
}

int (*const other_calls[])(struct scope *scope) = {
    null_value,       copy,             plain,        make_tuple,     make_tuple,
    tuple_getitem,    tuple_reset_item, check_tuple_info, check_prim_value_info, check_other_info,
    call_routine,     call_recursion,   make_closure,     invoke,       echo,
    call_global,      call_global,
};
