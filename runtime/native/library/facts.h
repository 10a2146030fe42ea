/* The fact symbol of a function, __packer_fn_<name>, taken apart. No Python.h. */
#ifndef DSO_PACKER_LIBRARY_FACTS_H
#define DSO_PACKER_LIBRARY_FACTS_H

#include <stddef.h>

struct param {
  const char *name;
  const char *code; /* "i64", "*f32" (writable), "&f32" (const), ... */
};

/* All strings point into the text, which the owner of the facts keeps. */
struct facts {
  int is_packed; /* abi packed_c; else a safe call */
  int gil_keep;
  const char *type; /* the declaration without the function's name, or NULL */
  const char *doc;  /* or NULL */
  int num_params;
  struct param *params;           /* of heap.h, or NULL */
  int first_written, end_written; /* all that are written through ("*f32") are from here to there */
};

/* Parse NUL-terminated text in place: lines "key value\n", unknown keys skipped, doc last.
 * Returns NULL, or what is wrong with it, or HEAP_NO_MEMORY. */
const char *facts_parse(char *text, struct facts *facts);

#endif
