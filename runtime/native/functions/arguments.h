/* Arguments of the global functions. Each reader returns 0, or -1 with an error raised that names the
 * function and the argument. */
#pragma once

#include "abi/dtype.h"
#include "types/values.h"

/* A global function: a safe call. The handle is not used. */
#define GLOBAL_FUNCTION(name) \
  int name(void *handle, const dso_any *args, int32_t num_args, dso_any *result)

/* The elements of a compact tensor on the CPU. */
struct array {
  const DLTensor *tensor;
  char *data; /* the first element */
  int64_t size;
  size_t itemsize;
};

int take_array(const char *function, const dso_any *args, int32_t index, struct array *array);

/* The same for an output, which must not be read-only memory. */
int take_output(const char *function, const dso_any *args, int32_t index, struct array *array);

/* The same for an input on any device. The caller releases *copy, which is NULL or owns the
 * elements. */
int fetch_array(const char *function, const dso_any *args, int32_t index, struct array *array,
                dso_object **copy);

/* A new tensor on the CPU, whose elements are not initialised; NULL with an error raised. */
dso_object *new_array(DLDataType dtype, int32_t ndim, const int64_t *shape, struct array *array);

/* A float; an int is converted. */
int take_float(const char *function, const dso_any *args, int32_t index, double *number);

static inline int dtype_is(DLDataType dtype, int code, int bits) {
  return dtype.code == code && dtype.bits == bits && dtype.lanes == 1;
}

/* Raise TypeError about the data type of an argument. Returns -1. */
int refuse_dtype(const char *function, int32_t index, const char *expected, DLDataType found);

/* The extents around an axis of a tensor. */
struct axis {
  int64_t before, length, after;
};

/* Read an axis; a negative one counts from the end. */
int take_axis(const char *function, const dso_any *args, int32_t index, const DLTensor *tensor,
              struct axis *axis);
