/* The metadata of a function ("facts"), parsed from the symbol __packer_fn_<name>. */
#ifndef DSO_PACKER_LIBRARY_FACTS_H
#define DSO_PACKER_LIBRARY_FACTS_H

#include <stddef.h>

struct param {
  const char *name;
  const char *code; /* "i64", "*f32" (writable), "&f32" (const), ... */
};

/* All strings point into the text, which must outlive the struct. */
struct facts {
  int is_packed; /* abi packed_c; otherwise a safe call */
  int gil_keep;
  const char *type; /* the declaration without the function's name, or NULL */
  const char *doc;  /* or NULL */
  int num_params;
  struct param *params;           /* allocated by abi/heap.h, or NULL */
  int first_written, end_written; /* this range contains all writable ones ("*f32") */
};

/* Parse NUL-terminated text in place: lines "key value\n", doc last. Unknown keys are skipped.
 * Return NULL, the text of an error, or HEAP_NO_MEMORY. */
const char *facts_parse(char *text, struct facts *facts);

#endif
