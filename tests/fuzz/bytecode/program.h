/* A program of bytecode under construction, and what is known of the values in it. */
#ifndef DSO_PACKER_FUZZ_PROGRAM_H
#define DSO_PACKER_FUZZ_PROGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "vm/vm.h"

enum {
  NUM_REGISTERS = 10,
  NUM_ROUTINES = 4,
  MOST_SIGNATURE = 6,
  MOST_EXTENTS = 4,
  MOST_TUPLE = 4,
  MOST_CONSTANTS = 128,
  MOST_INSTRUCTIONS = 512,
  MOST_CODE_WORDS = 8192,
  MOST_FUNCTIONS = 128,
  MOST_NODES = 256
};

/* Draws: the input's bytes first, then numbers that they seed. */
struct draws {
  const uint8_t *data;
  size_t left;
  uint64_t seed;
};
unsigned draw(struct draws *draws, unsigned below);

enum kind {
  NOTHING, /* None */
  INT,
  FLOAT,
  BOOL,
  TEXT,
  DTYPE,
  DEVICE,
  STORAGE,
  TENSOR,
  SHAPE,
  HEAP,
  TUPLE,
  CLOSURE,
  ANYTHING /* or not known */
};

/* The known properties of a value: enough for most programs to run to their end. */
struct value {
  enum kind kind;
  DLDataType dtype; /* TENSOR, DTYPE */
  int64_t ndim;     /* TENSOR, SHAPE; of a HEAP and a TUPLE: how many */
  int64_t dims[MOST_EXTENTS];
  int64_t number;            /* INT, or the bytes of a STORAGE */
  int is_constant;           /* the number, or a SHAPE's extents, is this very one */
  const struct value *items; /* TUPLE */
  int routine;               /* CLOSURE: of bytecode, or -1: of the host, which takes anything */
  int num_saved;
};

struct routine {
  char name[8];
  int num_params, is_known; /* the signature is, since it was called */
  struct value params[MOST_SIGNATURE];
  int64_t start, end;
};

struct program {
  struct draws *draws;
  int is_wild; /* some calls get any arguments */
  struct routine routines[NUM_ROUTINES];
  dso_any constants[MOST_CONSTANTS], weights[MOST_CONSTANTS];
  int num_constants;
  int64_t words[MOST_CODE_WORDS], offsets[MOST_INSTRUCTIONS];
  int num_words, num_instructions;
  struct vm_function functions[MOST_FUNCTIONS];
  int num_functions, first_builtin, first_host, first_global;
  struct value nodes[MOST_NODES]; /* items of tuples */
  int num_nodes;
};

/* ---- Code (program.c); the writers stop adding when a table is full */

int is_full(const struct program *program);

static inline int64_t immediate(int64_t number) {
  return (int64_t)((uint64_t)VM_IMMEDIATE << 56 | ((uint64_t)number & 0xffffffffffffff));
}
static inline int64_t constant_at(int index) { return (int64_t)VM_CONSTANT << 56 | index; }
static inline int64_t function_at(int index) { return (int64_t)VM_FUNCTION << 56 | index; }

void emit(struct program *program, const int64_t *words, int count);
void emit_call(struct program *program, int64_t dst, int function, const int64_t *args, int count);

/* The index of a function of the machine, or of the host, by its name. */
int function_named(const struct program *program, const char *name);

/* Constants, as arguments; each takes over the reference of the value. */
int64_t add_constant(struct program *program, dso_any value);
int64_t shape_constant(struct program *program, int64_t ndim, const int64_t *dims);
int64_t dtype_constant(struct program *program, DLDataType dtype);
int64_t text_constant(struct program *program);

/* Begin a program with its tables of functions; free what it has. */
void begin_program(struct program *program, struct draws *draws);
void end_program(struct program *program);
struct vm_code code_of(const struct program *program);

/* ---- Instructions (generate.c): the routines, whose first has `params` */
void generate(struct program *program, const struct value *params, int num_params);

/* ---- Values (values.c) */

/* A data type, of all kinds; and what a tensor of it takes, counted apart from the core. */
DLDataType draw_dtype(struct draws *draws);
size_t expected_nbytes(DLDataType dtype, int64_t ndim, const int64_t *dims);
void draw_extents(struct draws *draws, int64_t *ndim, int64_t *dims);

/* An argument from outside with its memory, and what is known of it in the machine. */
dso_any draw_argument(struct draws *draws, struct value *known, int depth);
void free_arguments(void); /* the memory of borrowed ones */

/* A constant tensor in memory that ends the process when it is written. */
dso_object *readonly_tensor(struct draws *draws, struct value *known);

/* ---- Operations on values (touch.c): read, write unless read-only, copy, and compare */
void touch(const dso_any *value);

/* ---- Functions of the host (host.c) */
extern const char *const host_names[];
extern dso_function_object *const host_functions[];
void host_begin_run(void);

/* ---- The global functions that every program has, after the host's (global.c) */
void clear_tensor_cache(void);

#endif
