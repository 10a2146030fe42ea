/* A safetensors file within a payload: its place, and its tensors (docs/format.md).
 *
 * A load only scans the header, for the length of the file. The header is parsed and checked at the
 * first use of the tensors. */
#pragma once

#include "blob/reader.h"
#include "scan/json.h"

/* The place of a file. */
struct weights_file {
  size_t start; /* the offset of the header in the blob, for messages */
  struct span header, data;
};

/* A named tensor: compact, in the data of the file. */
struct weight {
  struct span name; /* a NUL follows; it may contain others */
  uint64_t begin, end;
  DLTensor tensor;
};

struct weights {
  size_t count;
  struct weight *items;    /* in the header's order */
  struct weight **by_name; /* sorted */
};

/* Read a file; its last tensor ends it. Returns 0, or -1 with the error raised. */
int weights_file_read(struct reader *reader, struct weights_file *file);

/* Parse and check the header. NULL with BlobFormatError or OutOfMemoryError raised. Freed by
 * free(). */
struct weights *weights_parse(const struct reader *reader, const struct weights_file *file);

const struct weight *weights_find(const struct weights *self, const char *name);

/* ---- weights_header.c */

/* The same without the data: the tensors have none. *nbytes is the size that they cover. *kept is
 * the header as JSON, for json_free; it may be NULL. */
struct weights *weights_read_header(const struct reader *reader, struct span header, size_t start,
                                    uint64_t *nbytes, const struct json **kept);

/* The key of texts by name in a header. */
extern const char weights_metadata_key[];
