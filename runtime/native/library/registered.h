/* Symbols that statically linked models registered in this process (docs/outputs.md, Models within
 * a program).
 *
 * There are two lists. Libraries that the core opened register with the core, if they leave the
 * function undefined. Models in the program that embeds Python register with the program, if it was
 * linked with -rdynamic. An image that registers symbols is never unmapped. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The location of a registered symbol. */
struct registered_symbol {
  const uint8_t *address; /* NULL if no symbol of this name is registered */
  size_t nbytes;          /* from the address to the end of its segment */
  uint32_t flags;         /* PF_X, PF_W, PF_R */
};

struct registered_symbol registered_find(const char *name);

/* The same of <start><prefix><name>. */
struct registered_symbol registered_find_in(const char *start, const char *prefix,
                                            const char *name);

/* The pointer variable of a model with the prefix, or NULL: for context_fill. */
void *registered_variable(const void *prefix, const char *name);

/* Find a symbol of a list of checksums, which has the prefix: for checksums_verify. */
int registered_listed(const void *library, const char *name, int is_code, const uint8_t **bytes,
                      size_t *nbytes);

/* Store the size of a symbol's data, which the bytes themselves give: a blob, by its name, begins
 * with a count of bytes; all else is text and ends with a NUL, which is counted. Return NULL, or
 * why the bytes give none. */
const char *registered_data(const char *name, const struct registered_symbol *symbol,
                            size_t *nbytes);
const char *registered_text(const struct registered_symbol *symbol, size_t *nbytes);

/* Call `visit` for each registered name until it returns nonzero; return that value, or 0. */
int registered_visit(int (*visit)(const char *name, void *arg), void *arg);

/* Call `visit` with the parts <start> and <name> of each registered <start><prefix><name>. */
int registered_visit_in(const char *start, const char *prefix,
                        int (*visit)(const char *start, const char *name, void *arg), void *arg);

/* Why a registration during a dlopen was refused; longer texts are truncated. */
struct refused_registration {
  struct refused_registration *outer;
  char text[1024];
};

/* Called before and after a dlopen; pairs nest. registration_end returns true if a registration of
 * this thread was refused in between. Outside of a pair refusals are printed to stderr. */
void registration_begin(struct refused_registration *refusal);
int registration_end(const struct refused_registration *refusal);
