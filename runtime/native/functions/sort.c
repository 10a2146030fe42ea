/* tvm.contrib.sort.sort, argsort and argsort_nms. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "functions/global_functions.h"
#include "functions/rows.h"

/* One call: the tensors, the order, and memory for a row. */
struct sorting {
  struct array input, output;
  struct axis axis;
  int is_ascending;
  char *pairs;  /* a row, and half of it for the merges */
  char *values; /* the bytes of a row, since input and output may be the same memory */
};

static int allocate(struct sorting *self, const char *function) {
  size_t count = (size_t)self->axis.length + 1, pairs;
  if (__builtin_mul_overflow(count + count / 2 + 1, (size_t)PAIR_SIZE, &pairs)) pairs = SIZE_MAX;
  self->pairs = heap_new(pairs);
  self->values = heap_new(count * self->input.itemsize);
  if (self->pairs != NULL && self->values != NULL) return 0;
  return raised_format("OutOfMemoryError", "%s: no memory to sort %" PRId64 " elements", function,
                       self->axis.length);
}

static void sorting_free(struct sorting *self) {
  free(self->pairs);
  free(self->values);
}

/* Sort the first `count` elements of a row. */
static void sort_row(const struct sorting *self, int64_t first, int64_t count) {
  const struct row row = {self->input.tensor->dtype,
                          self->input.data + first * (int64_t)self->input.itemsize,
                          self->axis.after};
  void *room = self->pairs + (size_t)count * PAIR_SIZE, *pairs = self->pairs;
  row_read(&row, 0, count, self->is_ascending, pairs);
  if (key_kind_of(row.dtype) == REAL_KEY) real_stable_sort(pairs, count, room, BY_KEY);
  else int_stable_sort(pairs, count, room, BY_KEY);
}

static int64_t row_count(const struct sorting *self) {
  return self->axis.length == 0 ? 0 : self->axis.before * self->axis.after;
}

/* The first element of a row. */
static int64_t row_begin(const struct sorting *self, int64_t row) {
  const struct axis *axis = &self->axis;
  return row / axis->after * axis->length * axis->after + row % axis->after;
}

static char *output_at(const struct sorting *self, int64_t first, int64_t position) {
  return self->output.data + (first + position * self->axis.after) * (int64_t)self->output.itemsize;
}

static int take(struct sorting *self, const char *function, const dso_any *args, int32_t output,
                int32_t axis) {
  int64_t is_ascending;
  if (take_array(function, args, 0, &self->input) != 0 ||
      take_output(function, args, output, &self->output) != 0 ||
      take_axis(function, args, axis, self->input.tensor, &self->axis) != 0 ||
      value_int(function, args, axis + 1, &is_ascending) != 0)
    return -1;
  self->is_ascending = is_ascending != 0;
  if (self->output.size == self->input.size) return 0;
  return raised_format("ValueError",
                       "%s: argument %d, expected %" PRId64 " elements, found %" PRId64, function,
                       (int)output + 1, self->input.size, self->output.size);
}

/* uint8 and int8 are for topk only, as in TVM. */
static int check_input(const char *function, DLDataType dtype) {
  if (key_kind_of(dtype) != NO_KEY && dtype.bits != 8) return 0;
  return refuse_dtype(function, 0, "a tensor of float16, float32, float64, int32 or int64", dtype);
}

/* ---- The functions */

static void sort_values(const struct sorting *self, int64_t first) {
  size_t itemsize = self->input.itemsize;
  int64_t length = self->axis.length, step = self->axis.after * (int64_t)itemsize;
  const char *from = self->input.data + first * (int64_t)itemsize;
  sort_row(self, first, length);
  for (int64_t i = 0; i < length; i++)
    memcpy(self->values + (size_t)i * itemsize, from + i * step, itemsize);
  for (int64_t i = 0; i < length; i++)
    memcpy(output_at(self, first, i), self->values + (size_t)pair_index(self->pairs, i) * itemsize,
           itemsize);
}

GLOBAL_FUNCTION(global_sort) {
  static const char function[] = "tvm.contrib.sort.sort";
  struct sorting self = {.pairs = NULL};
  (void)handle, (void)result;
  if (value_count(function, num_args, 4, 4) != 0 || take(&self, function, args, 1, 2) != 0 ||
      check_input(function, self.input.tensor->dtype) != 0)
    return -1;
  if (memcmp(&self.input.tensor->dtype, &self.output.tensor->dtype, sizeof(DLDataType)) != 0)
    return refuse_dtype(function, 1, "the input's data type", self.output.tensor->dtype);
  int status = allocate(&self, function);
  for (int64_t row = 0; row < row_count(&self) && status == 0; row++)
    sort_values(&self, row_begin(&self, row));
  sorting_free(&self);
  return status;
}

GLOBAL_FUNCTION(global_argsort) {
  static const char function[] = "tvm.contrib.sort.argsort";
  struct sorting self = {.pairs = NULL};
  (void)handle, (void)result;
  if (value_count(function, num_args, 4, 4) != 0 || take(&self, function, args, 1, 2) != 0 ||
      check_input(function, self.input.tensor->dtype) != 0)
    return -1;
  DLDataType dtype = self.output.tensor->dtype;
  if (key_kind_of(dtype) == NO_KEY || dtype.bits < 32)
    return refuse_dtype(function, 1, "a tensor of int32, int64, float32 or float64", dtype);
  int status = allocate(&self, function);
  for (int64_t row = 0; row < row_count(&self) && status == 0; row++) {
    int64_t first = row_begin(&self, row);
    sort_row(&self, first, self.axis.length);
    for (int64_t i = 0; i < self.axis.length; i++)
      store_index(output_at(&self, first, i), dtype, pair_index(self.pairs, i));
  }
  sorting_free(&self);
  return status;
}

/* Sort as many elements of a row as the counts say. The other positions keep their own index. */
static int sort_counted(const struct sorting *self, const struct array *counts, int64_t row) {
  int64_t first = row_begin(self, row), length = self->axis.length;
  int32_t count;
  memcpy(&count, counts->data + row * (int64_t)sizeof count, sizeof count);
  if (count > length)
    return raised_format("ValueError",
                         "tvm.contrib.sort.argsort_nms: %d elements of row %" PRId64
                         ", expected at most %" PRId64,
                         (int)count, row, length);
  if (count < 0) count = 0;
  sort_row(self, first, count);
  for (int64_t i = 0; i < length; i++) {
    int32_t index = (int32_t)(i < count ? pair_index(self->pairs, i) : i);
    memcpy(output_at(self, first, i), &index, sizeof index);
  }
  return 0;
}

GLOBAL_FUNCTION(global_argsort_nms) {
  static const char function[] = "tvm.contrib.sort.argsort_nms";
  struct sorting self = {.pairs = NULL};
  struct array counts;
  (void)handle, (void)result;
  if (value_count(function, num_args, 5, 5) != 0 || take(&self, function, args, 2, 3) != 0 ||
      take_array(function, args, 1, &counts) != 0)
    return -1;
  if (!dtype_is(self.input.tensor->dtype, DTYPE_FLOAT, 32))
    return refuse_dtype(function, 0, "a tensor of float32", self.input.tensor->dtype);
  if (!dtype_is(counts.tensor->dtype, DTYPE_INT, 32))
    return refuse_dtype(function, 1, "a tensor of int32", counts.tensor->dtype);
  if (!dtype_is(self.output.tensor->dtype, DTYPE_INT, 32))
    return refuse_dtype(function, 2, "a tensor of int32", self.output.tensor->dtype);
  if (counts.size < row_count(&self))
    return raised_format("ValueError",
                         "%s: argument 2, expected %" PRId64 " elements, found %" PRId64, function,
                         row_count(&self), counts.size);
  int status = allocate(&self, function);
  for (int64_t row = 0; row < row_count(&self) && status == 0; row++)
    status = sort_counted(&self, &counts, row);
  sorting_free(&self);
  return status;
}
