/* The manifest of a library: the places of the entries of its blob (runtime/serial/manifest.py).
 *
 * It is used to skip payloads whose type key has no loader. */
#pragma once

#include "blob/reader.h"
#include "scan/json.h"

struct manifest_entry {
  uint64_t offset, end;
  size_t index; /* in the text */
  const struct json *type_key;
};

/* Begins as {0}. */
struct manifest {
  const struct json *fields; /* NULL until it is parsed */
  size_t count;
  struct manifest_entry *entries; /* by offset; of equal ones the last one counts */
};

/* Parse the text; NULs at its end are ignored. Returns 0, or -1 with BlobFormatError. */
int manifest_parse(struct manifest *self, struct span text, const char *path);
void manifest_clear(struct manifest *self);

/* Skip the payload of the entry of `key` that begins at `start`. Returns 0, or -1 with
 * BlobFormatError if the manifest does not list the entry, or lists a wrong length. */
int manifest_skip(const struct manifest *self, struct reader *reader, struct span key, size_t start,
                  struct span *payload);
