/* The symbols that an export wrote into a library, and their CRC-32: __packer_checksums
 * (docs/format.md, Checksums). No Python.h. */
#ifndef DSO_PACKER_LIBRARY_CHECKSUMS_H
#define DSO_PACKER_LIBRARY_CHECKSUMS_H

#include <stddef.h>
#include <stdint.h>

#include "library/load_error.h"

/* Find a symbol that a library defines: constant data, whose bytes are then set, or code. Returns
 * 1, or 0 if there is no such symbol. */
typedef int (*checksums_find)(const void *library, const char *symbol, int is_code,
                              const uint8_t **bytes, size_t *nbytes);

struct checksums {
  int has_blob;
  uint32_t structure; /* CRC-32 of the blob's structure, if the list has a blob */
};

/* Verify all that the list `symbol` of a library lists, but for the blob's structure. A library
 * without the list passes, unless it has a manifest and no blob. Returns 0, or -1 with *error
 * filled. */
int checksums_verify(const char *symbol, checksums_find find, const void *library,
                     struct checksums *checksums, struct load_error *error);

#endif
