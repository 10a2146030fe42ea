/* A range of a library's image, over which pieces of a file are mapped.
 *
 * A piece has no access (PROT_NONE) until it was verified, so code that asks for no proof crashes
 * instead of reading bytes that were not verified. Pieces with more than tensors are replaced by
 * verified copies. The verification itself is the program's. */
#pragma once

#include "abi/proof.h"
#include "library/loaded.h"

enum piece_state { PIECE_UNPROVED, PIECE_MAPPED, PIECE_COPIED };

struct pieces {
  struct proof proof;   /* first */
  const uint8_t *bytes; /* NULL if nothing is mapped */
  size_t nbytes, piece_nbytes;
  uint8_t *states; /* enum piece_state of each piece; threads read and write it without a lock */
  /* Verify `count` pieces from `first` on, counted from `bytes`, and write them to `copy`, unless it is
   * NULL. Returns 0, or -1 with an error. */
  int (*verify)(void *context, size_t first, size_t count, uint8_t *copy);
  void *context;
};

/* A range of a file, and the size of a piece. */
struct file_range {
  int descriptor;
  uint64_t offset, nbytes, piece_nbytes;
};

/* Map the range over the bytes of the library that have the same offset in its own file; the caller
 * filled verify and context. Returns 0, or -1 with *error filled and nothing mapped. The library
 * unmaps it. */
int pieces_map(struct pieces *self, const struct loaded *library, const struct file_range *range,
               struct load_error *error);
void pieces_free(struct pieces *self);
