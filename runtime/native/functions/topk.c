/* tvm.contrib.sort.topk: a heap of the best elements, as in TVM. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "functions/global_functions.h"
#include "functions/rows.h"

static const char FUNCTION[] = "tvm.contrib.sort.topk";

struct selection {
  struct array input, values, indices; /* an output that is not wanted has no tensor */
  struct axis axis;
  int64_t k; /* the length of the outputs */
  int is_ascending;
  char *heap;  /* space for the heap, one more pair, and half of the heap for the sort */
  char *bytes; /* the elements of a result, since input and output may be the same memory */
};

/* ---- Arguments: input, one or two outputs, k, axis, which outputs, order */

static int take_outputs(struct selection *self, const dso_any *args, int32_t num_args) {
  struct span kind;
  if (value_text(FUNCTION, args, num_args - 2, &kind) != 0) return -1;
  int has_values = kind.size == 6 && memcmp(kind.data, "values", 6) == 0;
  int has_indices = kind.size == 7 && memcmp(kind.data, "indices", 7) == 0;
  if (kind.size == 4 && memcmp(kind.data, "both", 4) == 0) has_values = has_indices = 1;
  if (!has_values && !has_indices)
    return raised_format("ValueError", "%s: returns '%.*s', expected 'both', 'values' or 'indices'",
                         FUNCTION, (int)(kind.size < 40 ? kind.size : 40), kind.data);
  if (value_count(FUNCTION, num_args, 5 + has_values + has_indices, 5 + has_values + has_indices) !=
      0)
    return -1;
  if (has_values && take_output(FUNCTION, args, 1, &self->values) != 0) return -1;
  return has_indices ? take_output(FUNCTION, args, 1 + has_values, &self->indices) : 0;
}

static int check_dtypes(const struct selection *self) {
  DLDataType input = self->input.tensor->dtype;
  if (key_kind_of(input) == NO_KEY)
    return refuse_dtype(
        FUNCTION, 0, "a tensor of float16, float32, float64, int8, uint8, int32 or int64", input);
  if (self->values.tensor != NULL && memcmp(&self->values.tensor->dtype, &input, sizeof input) != 0)
    return refuse_dtype(FUNCTION, 1, "the input's data type", self->values.tensor->dtype);
  if (self->indices.tensor == NULL) return 0;
  DLDataType indices = self->indices.tensor->dtype;
  int is_same_byte = indices.bits == 8 && memcmp(&indices, &input, sizeof input) == 0;
  if (is_same_byte || (key_kind_of(indices) != NO_KEY && indices.bits >= 32)) return 0;
  return refuse_dtype(FUNCTION, self->values.tensor != NULL ? 2 : 1,
                      "a tensor of int32, int64, float32 or float64", indices);
}

static int check_size(const struct selection *self, const struct array *output) {
  int64_t size;
  if (output->tensor == NULL) return 0;
  if (__builtin_mul_overflow(self->axis.before * self->axis.after, self->k, &size))
    size = INT64_MAX;
  if (output->size >= size) return 0;
  return raised_format("ValueError", "%s: an output of %" PRId64 " elements, expected %" PRId64,
                       FUNCTION, output->size, size);
}

static int take(struct selection *self, const dso_any *args, int32_t num_args) {
  int64_t is_ascending;
  if (value_count(FUNCTION, num_args, 6, INT32_MAX) != 0 ||
      take_array(FUNCTION, args, 0, &self->input) != 0 || take_outputs(self, args, num_args) != 0 ||
      value_int(FUNCTION, args, num_args - 4, &self->k) != 0 ||
      take_axis(FUNCTION, args, num_args - 3, self->input.tensor, &self->axis) != 0 ||
      value_int(FUNCTION, args, num_args - 1, &is_ascending) != 0)
    return -1;
  self->is_ascending = is_ascending != 0;
  if (self->k < 1) self->k = self->axis.length;
  return check_dtypes(self) != 0 || check_size(self, &self->values) != 0 ||
                 check_size(self, &self->indices) != 0
             ? -1
             : 0;
}

/* ---- One row */

static void select_reals(const struct row *row, int64_t count, int64_t length, int is_ascending,
                         struct real_pair *heap) {
  struct real_pair next;
  real_make_heap(heap, count);
  for (int64_t i = count; i < length; i++) {
    row_read(row, i, i + 1, is_ascending, &next);
    if (next.key < heap[0].key) real_heap_replace(heap, count, next);
  }
  real_stable_sort(heap, count, heap + count + 1, BY_KEY_AND_INDEX);
}

static void select_ints(const struct row *row, int64_t count, int64_t length, int is_ascending,
                        struct int_pair *heap) {
  struct int_pair next;
  int_make_heap(heap, count);
  for (int64_t i = count; i < length; i++) {
    row_read(row, i, i + 1, is_ascending, &next);
    if (next.key < heap[0].key) int_heap_replace(heap, count, next);
  }
  int_stable_sort(heap, count, heap + count + 1, BY_KEY_AND_INDEX);
}

/* Store the results at `first`, an element of the outputs. */
static void store(const struct selection *self, const struct row *row, int64_t first,
                  int64_t count) {
  int64_t itemsize = (int64_t)self->input.itemsize, step = self->axis.after;
  const struct array *values = &self->values, *indices = &self->indices;
  for (int64_t i = 0; i < count; i++)
    memcpy(self->bytes + i * itemsize,
           row->data + pair_index(self->heap, i) * row->stride * itemsize, (size_t)itemsize);
  for (int64_t i = 0; i < count && values->tensor != NULL; i++)
    memcpy(values->data + (first + i * step) * itemsize, self->bytes + i * itemsize,
           (size_t)itemsize);
  for (int64_t i = 0; i < count && indices->tensor != NULL; i++)
    store_index(indices->data + (first + i * step) * (int64_t)indices->itemsize,
                indices->tensor->dtype, pair_index(self->heap, i));
}

static void select_row(const struct selection *self, int64_t number, int64_t count) {
  const struct axis *axis = &self->axis;
  int64_t before = number / axis->after, after = number % axis->after;
  int64_t first = before * axis->length * axis->after + after;
  const struct row row = {self->input.tensor->dtype,
                          self->input.data + first * (int64_t)self->input.itemsize, axis->after};
  row_read(&row, 0, count, self->is_ascending, self->heap);
  void *heap = self->heap;
  if (key_kind_of(row.dtype) == REAL_KEY)
    select_reals(&row, count, axis->length, self->is_ascending, heap);
  else select_ints(&row, count, axis->length, self->is_ascending, heap);
  store(self, &row, before * self->k * axis->after + after, count);
}

GLOBAL_FUNCTION(global_topk) {
  struct selection self = {.heap = NULL};
  (void)handle, (void)result;
  if (take(&self, args, num_args) != 0) return -1;
  int64_t count = self.k < self.axis.length ? self.k : self.axis.length;
  if (count == 0) return 0;
  self.heap = heap_new(((size_t)count + (size_t)count / 2 + 3) * PAIR_SIZE);
  self.bytes = heap_new((size_t)count * self.input.itemsize);
  int status = self.heap != NULL && self.bytes != NULL ? 0 : -1;
  if (status != 0)
    (void)raised_format("OutOfMemoryError", "%s: no memory for %" PRId64 " elements", FUNCTION,
                        count);
  for (int64_t row = 0; row < self.axis.before * self.axis.after && status == 0; row++)
    select_row(&self, row, count);
  free(self.heap);
  free(self.bytes);
  return status;
}
