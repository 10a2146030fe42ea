/* Symbols that statically linked models registered in this process (formats: System library).
 *
 * Two lists: what registered with the core, since a library that it opened left the function
 * undefined; and what registered with the program that embeds this Python, if it was linked with
 * -rdynamic. Whoever registers stays in memory for as long as the process. No Python.h. */
#ifndef DSO_PACKER_LIBRARY_REGISTERED_H
#define DSO_PACKER_LIBRARY_REGISTERED_H

#include <stddef.h>
#include <stdint.h>

/* Where a registered symbol lies: how much of its segment is behind it, and the segment's flags. */
struct registered_symbol {
  const uint8_t *address; /* NULL: none is registered by this name */
  size_t nbytes;
  uint32_t flags; /* PF_X, PF_W, PF_R */
};

struct registered_symbol registered_find(const char *name);

/* Call visit for each registered name, until it returns other than 0; that is returned. */
int registered_visit(int (*visit)(const char *name, void *arg), void *arg);

/* What a dlopen was refused; what does not fit is cut. */
struct refused_registration {
  struct refused_registration *outer;
  char text[1024];
};

/* Around a dlopen, and they nest: whether anything was refused in this thread between them. Outside
 * of them a refusal goes to stderr. */
void registration_begin(struct refused_registration *refusal);
int registration_end(const struct refused_registration *refusal);

#endif
