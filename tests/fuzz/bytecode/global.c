/* Calls of the global functions that every program has: mostly with arguments that they accept. */
#include <string.h>

#include "module/global.h"
#include "scope.h"

/* The arguments of each: t a tensor, the same one each time; i an int of at most 3, f a float, s any
 * text, b the text "both", n one of four names. */
static const struct signature {
  const char *name, *args;
} signatures[] = {
    {"tvm.contrib.sort.sort", "ttii"},
    {"tvm.contrib.sort.argsort", "ttii"},
    {"tvm.contrib.sort.argsort_nms", "tttii"},
    {"tvm.contrib.sort.topk", "tttiibi"},
    {"tvm.contrib.random.seed", "i"},
    {"tvm.contrib.random.uniform", "iiift"},
    {"tvm.contrib.random.normal", "fft"},
    {"tvm.contrib.random.randint", "iit"},
    {"tvm.contrib.random.random_fill", "t"},
    {"relax.run.nonzero", "t"},
    {"relax.run.unique", "tiiii"},
    {"relax.run.unique", "tiiiii"},
    {"relax.run.shape_to_tensor", "h"},
    {"relax.run.print", "eaaa"},
    {"relax.run.print", "sa"},
    {"relax.run.assert_op", "isa"},
    {"vm.builtin.debug_print", "st"},
    {"vm.builtin.invoke_debug_func", "asa"},
    {"vm.builtin.multinomial_from_uniform", "tt"},
    {"vm.builtin.sample_top_p_from_prob", "tff"},
    {"vm.builtin.sample_top_p_from_logits", "tfff"},
    {"vm.builtin.apply_softmax_with_temperature", "tf"},
    {"vm.builtin.apply_repetition_penalty", "ttf"},
    {"vm.builtin.apply_presence_and_frequency_penalty", "tttff"},
    {"vm.builtin.tensor_cache.get", "n"},
    {"vm.builtin.tensor_cache.update", "nti"},
    {"vm.builtin.tensor_cache.remove", "n"},
    {"vm.builtin.tensor_cache.clear", ""},
    {"vm.builtin.param_array_from_cache", "pi"},
    {"vm.builtin.param_array_from_cache_by_name", "a"},
    {"vm.builtin.param_array_from_cache_by_name_unpacked", "nn"},
    {"vm.builtin.param_module_from_cache", "pi"},
    {"vm.builtin.memory_manager.clear", ""},
};

static int64_t text_of_kind(struct scope *scope, char kind) {
  static const char *const names[] = {"p_0", "p_1", "p_2", "x"};
  const char *text = kind == 'b' ? "both" : kind == 'p' ? "p" : "";
  dso_any value;
  if (kind == 'e') text = "{} {0!r:*^12.3} {{";
  if (kind == 'n') text = names[scope_draw(scope, 4)];
  if (kind == 's') return text_constant(scope->program);
  return object_make_string(&value, 1, text, strlen(text)) == 0
             ? add_constant(scope->program, value)
             : VM_VOID_REGISTER;
}

static int64_t argument(struct scope *scope, char kind, int tensor, int shape) {
  static const double floats[] = {0, 0.3, 1, 2.5};
  dso_any value = {.type_index = DSO_FLOAT};
  switch (kind) {
    case 't': return tensor;
    case 'h': return shape;
    case 'a': return scope_draw(scope, NUM_REGISTERS);
    case 'i': return immediate((int64_t)scope_draw(scope, 5) - 1);
    case 'f':
      value.v_float64 = floats[scope_draw(scope, 4)];
      return add_constant(scope->program, value);
    default: return text_of_kind(scope, kind);
  }
}

int call_global(struct scope *scope) {
  static const struct value unknown = {.kind = ANYTHING};
  const struct signature *called =
      &signatures[scope_draw(scope, sizeof signatures / sizeof *signatures)];
  int tensor = find_kind(scope, TENSOR), shape = find_kind(scope, SHAPE), count = 0;
  int64_t args[8];
  if (tensor < 0 || shape < 0 || scope_draw(scope, 3) != 0) return 0;
  for (const char *kind = called->args; *kind != '\0'; kind++)
    args[count++] = argument(scope, *kind, tensor, shape);
  call_named(scope, called->name, draw_dst(scope), args, count, &unknown);
  return 1;
}

void clear_tensor_cache(void) {
  dso_function_object *clear = built_in_find("vm.builtin.tensor_cache.clear");
  dso_any result = {.type_index = DSO_NONE};
  (void)clear->safe_call(clear, NULL, 0, &result);
}
