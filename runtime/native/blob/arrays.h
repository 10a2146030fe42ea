/* Named arrays: NDArrays of payloads, and params dict files. Their data is not copied. */
#ifndef DSO_PACKER_BLOB_ARRAYS_H
#define DSO_PACKER_BLOB_ARRAYS_H

#include "blob/reader.h"
#include "device/tensor_object.h"

struct named_array {
  char *name;
  dso_tensor_object *tensor; /* owned, read-only; it retains the reader's owner */
};

struct named_arrays {
  size_t count;
  struct named_array *items;
};

/* Read an NDArray. NULL with an error raised. A host that needs aligned data gets a copy if the
 * payload is not aligned to the element's size. */
dso_tensor_object *reader_ndarray(struct reader *reader);

/* vector<string>, u64 count, NDArrays. Returns 0, or -1 with an error raised and nothing to free. */
int named_arrays_read(struct reader *reader, struct named_arrays *arrays);

/* The bytes of a params dict file (runtime/tensors/params.py). */
int named_arrays_read_params(const void *bytes, size_t nbytes, dso_object *owner,
                             struct named_arrays *arrays);

void named_arrays_clear(struct named_arrays *arrays);
dso_tensor_object *named_arrays_find(const struct named_arrays *arrays, const char *name);

#endif
