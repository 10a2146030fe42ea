#include "module/global.h"
#include "program.h"

#include <string.h>

unsigned draw(struct draws *draws, unsigned below) {
  draws->seed = draws->seed * 6364136223846793005u + 1442695040888963407u;
  unsigned number = (unsigned)(draws->seed >> 33);
  if (draws->left > 0) {
    number ^= (unsigned)*draws->data++;
    draws->left--;
  }
  return number % below;
}

int is_full(const struct program *program) {
  return program->num_instructions > MOST_INSTRUCTIONS - 16 ||
         program->num_words > MOST_CODE_WORDS - 256 ||
         program->num_constants > MOST_CONSTANTS - 40 || program->num_nodes > MOST_NODES - 16;
}

void emit(struct program *program, const int64_t *words, int count) {
  program->offsets[program->num_instructions++] = program->num_words;
  memcpy(program->words + program->num_words, words, (size_t)count * sizeof *words);
  program->num_words += count;
}

void emit_call(struct program *program, int64_t dst, int function, const int64_t *args, int count) {
  int64_t words[4 + 64] = {VM_CALL, dst, function, count};
  memcpy(words + 4, args, (size_t)count * sizeof *args);
  emit(program, words, 4 + count);
}

int function_named(const struct program *program, const char *name) {
  for (int i = program->first_builtin;; i++) {
    const char *other = program->functions[i].name, *rest = name;
    while (*other == *rest && *rest != '\0') other++, rest++; /* the fuzzer slows strcmp */
    if (*other == *rest) return i;
  }
}

int64_t add_constant(struct program *program, dso_any value) {
  program->constants[program->num_constants] = value;
  return constant_at(program->num_constants++);
}

int64_t shape_constant(struct program *program, int64_t ndim, const int64_t *dims) {
  return add_constant(program, any_of_object(shape_object_new((size_t)ndim, dims)));
}

int64_t dtype_constant(struct program *program, DLDataType dtype) {
  return add_constant(program, (dso_any){.type_index = DSO_DATA_TYPE, .v_dtype = dtype});
}

int64_t text_constant(struct program *program) {
  static const char text[] = "ErrorContext(fn=main, loc=param[0], annotation=R.Tensor) ";
  dso_any value;
  unsigned length = draw(program->draws, sizeof text);
  return object_make_string(&value, 1, text, length) == 0 ? add_constant(program, value)
                                                          : VM_VOID_REGISTER;
}

static void add_function(struct program *program, const char *name, int64_t kind) {
  program->functions[program->num_functions++] =
      (struct vm_function){.name = name, .kind = kind, .num_args = kind == VM_PACKED ? -2 : 0};
}

void begin_program(struct program *program, struct draws *draws) {
  memset(program, 0, sizeof *program);
  program->draws = draws;
  program->is_wild = draw(draws, 10) < 3;
  for (int i = 0; i < NUM_ROUTINES; i++) {
    memcpy(program->routines[i].name, "f0", 3);
    program->routines[i].name[1] = (char)('0' + i);
    add_function(program, program->routines[i].name, VM_BYTECODE);
  }
  program->first_builtin = program->num_functions;
  for (const struct vm_builtin_row *row = vm_builtins; row->name != NULL; row++)
    add_function(program, row->name, VM_PACKED);
  program->first_host = program->num_functions;
  for (int i = 0; host_names[i] != NULL; i++) add_function(program, host_names[i], VM_PACKED);
  program->first_global = program->num_functions;
  for (const struct built_in_function *row = built_in_functions; row->name != NULL; row++)
    add_function(program, row->name, VM_PACKED);
}

void end_program(struct program *program) {
  for (int i = 0; i < program->num_constants; i++) {
    any_release(&program->constants[i]);
    any_release(&program->weights[i]);
  }
}

struct vm_code code_of(const struct program *program) {
  return (struct vm_code){.functions = (struct vm_function *)(uintptr_t)program->functions,
                          .num_functions = (size_t)program->num_functions,
                          .num_constants = (size_t)program->num_constants,
                          .num_instructions = (size_t)program->num_instructions,
                          .num_words = (size_t)program->num_words,
                          .offsets = (const unsigned char *)program->offsets,
                          .words = (const unsigned char *)program->words};
}
