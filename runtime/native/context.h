/* Context symbols: pointer variables of a library that its loader fills. */
#ifndef DSO_PACKER_NATIVE_CONTEXT_H
#define DSO_PACKER_NATIVE_CONTEXT_H

struct loaded;

/* Fill those that the library defines and that nobody (a TVM runtime) filled before. Called with
 * the lock of loaded.c held: the first to open fills, before any other opener can call. */
void context_fill(const struct loaded *library);

#endif
