/* One tensor in the header of a safetensors file. */
#pragma once

#include "abi/text.h"
#include "blob/weights.h"
#include "scan/json.h"

/* The format's data types; it packs elements of less than a byte, as DLDataType does. */
enum { NUM_WEIGHTS_DTYPES = 22 };
extern const struct weights_dtype {
  const char *name;
  DLDataType dtype;
} weights_dtypes[NUM_WEIGHTS_DTYPES];

/* The number of extents that an entry lists; 0 if it cannot be valid. */
size_t weights_entry_ndim(const struct json *entry);

/* Check the entry, which follows its key, and fill in its place and tensor, without name and data.
 * `dims` has room for shape and strides. Returns 0, or -1 with the error's text. */
int weights_entry_read(const struct json *key, int64_t *dims, struct weight *weight,
                       struct text *error);

/* Begin an error: "tensor <name>: <key>, expected ". */
void weights_entry_wrong(struct text *error, struct span name, const char *key);
