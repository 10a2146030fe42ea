/* The registers of a routine while it is generated. */
#ifndef DSO_PACKER_FUZZ_SCOPE_H
#define DSO_PACKER_FUZZ_SCOPE_H

#include "program.h"

struct scope {
  struct program *program;
  int routine, depth; /* of blocks within blocks */
  unsigned writable;  /* registers, as bits: what a block writes is not known after it */
  struct value known[NUM_REGISTERS];
};

static inline unsigned scope_draw(const struct scope *scope, unsigned below) {
  return draw(scope->program->draws, below);
}

/* A register with a value of a kind, or -1; ANYTHING: any register. */
int find_kind(const struct scope *scope, enum kind kind);

/* A register with a value that is known to be alike, or -1. */
int find_alike(const struct scope *scope, const struct value *value);
int are_alike(const struct value *a, const struct value *b);

/* 0, or in a wild program sometimes 1: by how much a number is too large. */
int64_t draw_excess(const struct scope *scope);

/* A register to write, or VM_VOID_REGISTER; and calls whose result is known. */
int64_t draw_dst(const struct scope *scope);
void call_named(struct scope *scope, const char *name, int64_t dst, const int64_t *args, int count,
                const struct value *result);

/* Each emits one call of one of the machine's own functions, of the host, or of a routine: 1, or 0
 * if the registers have nothing for it. (memory.c, shapes.c, calls.c) */
extern int (*const memory_calls[])(struct scope *scope);
extern int (*const shape_calls[])(struct scope *scope);
extern int (*const other_calls[])(struct scope *scope);

/* The same for the global functions that every program has (global.c). */
int call_global(struct scope *scope);
enum { NUM_MEMORY_CALLS = 12, NUM_SHAPE_CALLS = 10, NUM_OTHER_CALLS = 17 };

#endif
