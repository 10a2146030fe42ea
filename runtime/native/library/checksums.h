/* The list of the symbols that an export wrote into a library, and their CRC-32. It is stored in
 * the symbol __packer_checksums (docs/format.md, Checksums). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "library/load_error.h"

/* Find a symbol that a library defines: code, or constant data, whose bytes are stored in *bytes
 * and *nbytes. Return 1, or 0 if there is no such symbol. */
typedef int (*checksums_find)(const void *library, const char *symbol, int is_code,
                              const uint8_t **bytes, size_t *nbytes);

struct checksums {
  int has_blob;
  uint32_t structure; /* CRC-32 of the blob's structure, if the list has a blob */
};

/* Verify the symbols of a library against the list stored in its symbol `symbol`, except the blob's
 * structure, which the blob's reader verifies. A library without the list passes, unless it has a
 * manifest and no blob. Return 0, or -1 with *error filled. */
int checksums_verify(const char *symbol, checksums_find find, const void *library,
                     struct checksums *checksums, struct load_error *error);
