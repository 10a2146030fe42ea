/* The metadata of a function ("facts"), parsed from the symbol __packer_fn_<name>. */
#pragma once

#include <stddef.h>

#include "library/type_code.h"

struct param {
  const char *name;
  const char *code; /* "i64", "*f32" (writable), "&f32" (const), ... */
  enum code_kind kind;
  int kept; /* how long C code keeps it: KEPT_..., or the index of the parameter of its handle */
};

enum { KEPT_NOT = -1, KEPT_CALL = -2, KEPT_FOREVER = -3 };

/* All strings point into the text, which must outlive the struct. The lists are allocated by
 * abi/heap.h (facts_free); each is NULL if it is empty. */
struct facts {
  int is_packed; /* abi packed_c; otherwise a safe call */
  int gil_keep;
  int returns_const;    /* the result points to const memory */
  int has_params;       /* the callers' parameters are declared, possibly as none */
  const char *type;     /* the declaration without the function's name, or NULL */
  const char *doc;      /* or NULL */
  const char *result;   /* the code of what the C function returns, or NULL */
  const char *free;     /* the function that releases a handle, or NULL */
  const char *lifetime; /* the name of a parameter, or NULL */
  int num_params, num_outs, num_defaults, num_structs, num_kept, num_callbacks;
  struct param *params, *outs;
  struct param *defaults;         /* code: the value as JSON */
  struct param *callbacks;        /* code: "@point - &box": what it gets pointers to */
  struct param *kept;             /* code: "call", "forever" or "@parameter" */
  struct param *structs;          /* code: "size alignment field:code@offset ..." */
  int first_written, end_written; /* this range contains all writable ones ("*f32") */
};

/* Parse NUL-terminated text in place: lines "key value\n", doc last. Unknown keys are skipped.
 * Return NULL, the text of an error, or HEAP_NO_MEMORY. */
const char *facts_parse(char *text, struct facts *facts);
void facts_free(struct facts *facts);

/* Return the codes of what a callback gets, or NULL if none is a struct that is known. */
const char *facts_callback(const struct facts *facts, const char *name);

/* Return the position of the parameter of this name, or -1. */
int facts_find(const struct facts *facts, const char *name, size_t length);
