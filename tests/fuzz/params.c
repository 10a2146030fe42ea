/* Params dict files: each array that is read is inside the file. */
#include <stdlib.h>
#include <string.h>

#include "abi/raised.h"
#include "blob/arrays.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static volatile uint64_t sum; /* what is read is used */

static void read_array(const struct named_array *array) {
  const DLTensor *tensor = &array->tensor->tensor;
  size_t nbits = (size_t)tensor->dtype.bits * tensor->dtype.lanes; /* small elements are packed */
  for (int i = 0; i < tensor->ndim; i++) nbits *= (size_t)tensor->shape[i];
  if (tensor->data == NULL) return; /* incomplete: the file has too little of it */
  for (size_t i = 0; i < (nbits + 7) / 8; i++) sum += ((const uint8_t *)tensor->data)[i];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  struct named_arrays arrays;
  const char *kind, *message;
  uint8_t *file = malloc(nbytes > 0 ? nbytes : 1); /* its end is the end of a block */
  if (nbytes > 0) memcpy(file, data, nbytes);
  if (named_arrays_read_params(file, nbytes, NULL, &arrays) == 0) {
    for (size_t i = 0; i < arrays.count; i++) {
      read_array(&arrays.items[i]);
      if (arrays.items[i].name.data[arrays.items[i].name.size] != '\0') abort();
    }
    named_arrays_clear(&arrays);
  } else if (!raised_look(&kind, &message) || message[0] == '\0') abort();
  raised_forget();
  free(file);
  return 0;
}
