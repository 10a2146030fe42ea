/* Named arrays: NDArrays of payloads, and params dict files. Their data is not copied. */
#pragma once

#include "blob/reader.h"
#include "device/tensor_object.h"

struct named_array {
  struct span name; /* first, for name_order_make; a NUL follows, and it may contain others */
  dso_tensor_object *tensor; /* owned, read-only; it retains the reader's owner */
};

struct named_arrays {
  size_t count;
  struct named_array *items;
};

/* Read an NDArray: a read-only tensor that views the blob. NULL with an error raised. The data may
 * be unaligned or incomplete, so code that reads it calls ndarray_use first. */
dso_tensor_object *reader_ndarray(struct reader *reader);

/* Make the data of an array of reader_ndarray readable: replace an unaligned one by an aligned copy.
 * Returns 0, or -1 with ValueError raised if the payload does not have the tensor's size (old
 * versions of TVM wrote arrays with lanes too short; they can be carried, and have no data here).
 * The caller makes sure that no other thread uses *tensor. */
int ndarray_use(dso_tensor_object **tensor);

/* vector<string>, u64 count, NDArrays. Returns 0, or -1 with an error raised and nothing to free. */
int named_arrays_read(struct reader *reader, struct named_arrays *arrays);

/* The same for a payload that has the count, which is at `start`, before the names. */
int named_arrays_read_counted(struct reader *reader, uint64_t count, size_t start,
                              struct named_arrays *arrays);

/* The bytes of a params dict file (runtime/tensors/params.py). */
int named_arrays_read_params(const void *bytes, size_t nbytes, dso_object *owner,
                             struct named_arrays *arrays);

void named_arrays_clear(struct named_arrays *arrays);
