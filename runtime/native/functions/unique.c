/* relax.run.unique: the distinct elements of a tensor, or its distinct slices along an axis, as
 * numpy.unique finds them. */
#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"
#include "device/tensor_object.h"
#include "functions/elements.h"
#include "functions/global_functions.h"
#include "vm/object.h"

static const char FUNCTION[] = "relax.run.unique";

enum { SORTED = 1, INDEX, INVERSE, COUNTS, AXIS }; /* arguments */

struct slices {
  struct array array;
  dso_object *copy;
  struct axis axis; /* of slices; without an axis each element is a slice */
  int has_axis;
  int64_t axis_number;
  int64_t wants[AXIS];
  int64_t *order;   /* the slices, sorted; as many places again for the merges */
  int64_t *firsts;  /* by group: its first slice */
  int64_t *counts;  /* by group: its slices */
  int64_t *inverse; /* by slice: its group */
  int64_t num_groups;
};

/* ---- Order: by value, NaN last */

static int order_of_reals(double a, double b) {
  if (a < b || (a == a && b != b)) return -1;
  return a > b || (a != a && b == b);
}

/* The bits of an integer, with its sign bit flipped if it is signed: these order as unsigned. */
static uint64_t int_at(const struct array *array, int64_t at) {
  uint64_t bits = 0; /* little-endian */
  memcpy(&bits, array->data + at * (int64_t)array->itemsize, array->itemsize);
  if (array->tensor->dtype.code == DTYPE_INT) bits ^= (uint64_t)1 << (8 * array->itemsize - 1);
  return bits;
}

static int order_of_elements(const struct array *array, int64_t a, int64_t b) {
  if (array->tensor->dtype.code == DTYPE_FLOAT)
    return order_of_reals(real_at(array, a), real_at(array, b));
  uint64_t first = int_at(array, a), second = int_at(array, b);
  return first < second ? -1 : first > second;
}

static int order_of(const struct slices *self, int64_t a, int64_t b) {
  const struct axis *axis = &self->axis;
  for (int64_t before = 0; before < axis->before; before++)
    for (int64_t after = 0; after < axis->after; after++) {
      int64_t base = before * axis->length;
      int order = order_of_elements(&self->array, (base + a) * axis->after + after,
                                    (base + b) * axis->after + after);
      if (order != 0) return order;
    }
  return 0;
}

/* NaN are one element, but slices with NaN are distinct. */
static int has_nan(const struct slices *self, int64_t slice) {
  const struct axis *axis = &self->axis;
  if (self->array.tensor->dtype.code != DTYPE_FLOAT || !self->has_axis) return 0;
  for (int64_t i = 0; i < axis->before * axis->after; i++) {
    int64_t base = i / axis->after * axis->length + slice;
    double number = real_at(&self->array, base * axis->after + i % axis->after);
    if (number != number) return 1;
  }
  return 0;
}

/* A stable merge sort. */
static void sort_slices(struct slices *self) {
  int64_t count = self->axis.length, *from = self->order, *to = from + count;
  for (int64_t i = 0; i < count; i++) from[i] = i;
  for (int64_t run = 1; run < count; run *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * run) {
      int64_t a = begin, middle = begin + run < count ? begin + run : count, b = middle;
      int64_t end = middle + run < count ? middle + run : count;
      for (int64_t i = begin; i < end; i++)
        to[i] = a < middle && (b == end || order_of(self, from[b], from[a]) >= 0) ? from[a++]
                                                                                  : from[b++];
    }
    int64_t *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != self->order) memcpy(self->order, from, (size_t)count * sizeof *from);
}

/* ---- Groups of equal slices */

static void group(struct slices *self) {
  for (int64_t i = 0; i < self->axis.length; i++) {
    int64_t slice = self->order[i], last = self->num_groups - 1;
    if (i == 0 || order_of(self, self->order[i - 1], slice) != 0 || has_nan(self, slice)) {
      last = self->num_groups++;
      self->firsts[last] = slice;
      self->counts[last] = 0;
    }
    self->counts[last]++;
    self->inverse[slice] = last;
  }
}

/* Order the groups by their first slices instead. `order` is reused: the group of each first
 * slice. */
static void order_by_first(struct slices *self) {
  int64_t *group_of = self->order, *rank = self->order + self->axis.length, next = 0;
  for (int64_t i = 0; i < self->axis.length; i++) group_of[i] = -1;
  for (int64_t i = 0; i < self->num_groups; i++) group_of[self->firsts[i]] = i;
  for (int64_t i = 0; i < self->axis.length; i++)
    if (group_of[i] >= 0) rank[group_of[i]] = next++;
  for (int64_t i = 0; i < self->axis.length; i++) self->inverse[i] = rank[self->inverse[i]];
  for (int64_t i = 0; i < self->num_groups; i++) group_of[rank[i]] = self->counts[i];
  memcpy(self->counts, group_of, (size_t)self->num_groups * sizeof *group_of);
  for (int64_t i = 0; i < self->num_groups; i++) group_of[rank[i]] = self->firsts[i];
  memcpy(self->firsts, group_of, (size_t)self->num_groups * sizeof *group_of);
}

/* ---- Results */

static dso_object *make_values(const struct slices *self) {
  const DLTensor *tensor = self->array.tensor;
  int64_t shape[TENSOR_MAX_DIMS] = {self->num_groups};
  struct array made;
  int32_t ndim = self->has_axis ? tensor->ndim : 1;
  if (self->has_axis) memcpy(shape, tensor->shape, (size_t)ndim * sizeof *shape);
  if (self->has_axis) shape[self->axis_number] = self->num_groups;
  dso_object *object = new_array(tensor->dtype, ndim, shape, &made);
  if (object == NULL) return NULL;
  int64_t block = self->axis.after * (int64_t)made.itemsize;
  for (int64_t before = 0; before < self->axis.before; before++)
    for (int64_t i = 0; i < self->num_groups; i++)
      memcpy(made.data + (before * self->num_groups + i) * block,
             self->array.data + (before * self->axis.length + self->firsts[i]) * block,
             (size_t)block);
  return object;
}

static dso_object *make_ints(const int64_t *numbers, int32_t ndim, const int64_t *shape) {
  const DLDataType int64 = {.code = DTYPE_INT, .bits = 64, .lanes = 1};
  struct array made;
  dso_object *object = new_array(int64, ndim, shape, &made);
  if (object != NULL) memcpy(made.data, numbers, (size_t)made.size * sizeof *numbers);
  return object;
}

static dso_object *make_output(const struct slices *self, int which) {
  const DLTensor *tensor = self->array.tensor;
  switch (which) {
    case INDEX: return make_ints(self->firsts, 1, &self->num_groups);
    case COUNTS: return make_ints(self->counts, 1, &self->num_groups);
    case INVERSE:
      return self->has_axis ? make_ints(self->inverse, 1, &self->axis.length)
                            : make_ints(self->inverse, tensor->ndim, tensor->shape);
    default: return make_values(self);
  }
}

static int make_result(const struct slices *self, dso_any *result) {
  int64_t count = 1 + self->wants[INDEX] + self->wants[INVERSE] + self->wants[COUNTS], next = 0;
  dso_array_object *array = count > 1 ? array_object_new(count) : NULL;
  if (count > 1 && array == NULL) return -1;
  for (int which = SORTED; which <= COUNTS; which++) {
    if (which != SORTED && !self->wants[which]) continue;
    dso_object *made = make_output(self, which);
    if (made == NULL) {
      if (array != NULL) object_release(&array->object);
      return -1;
    }
    if (array != NULL) array->items[next++] = any_of_object(made);
    else *result = any_of_object(made);
  }
  if (array != NULL) *result = any_of_object(array);
  return 0;
}

/* ---- The function: tensor, is sorted, which outputs, and an axis or None */

static int take(struct slices *self, const dso_any *args, int32_t num_args) {
  if (value_count(FUNCTION, num_args, 5, 6) != 0) return -1;
  for (int32_t i = SORTED; i <= COUNTS; i++) {
    if (value_int(FUNCTION, args, i, &self->wants[i]) != 0) return -1;
    self->wants[i] = self->wants[i] != 0;
  }
  if (fetch_array(FUNCTION, args, 0, &self->array, &self->copy) != 0) return -1;
  DLDataType dtype = self->array.tensor->dtype;
  int is_int = dtype.code == DTYPE_INT || dtype.code == DTYPE_UINT || dtype.code == DTYPE_BOOL;
  int is_known = dtype.bits == 8 || dtype.bits == 16 || dtype.bits == 32 || dtype.bits == 64;
  if (dtype.lanes != 1 || !is_known || (!is_int && (dtype.code != DTYPE_FLOAT || dtype.bits == 8)))
    return refuse_dtype(FUNCTION, 0, "a tensor of bool, integers or floats", dtype);
  self->axis = (struct axis){1, self->array.size, 1};
  self->has_axis = num_args == 6 && args[AXIS].type_index != DSO_NONE;
  if (!self->has_axis) return 0;
  if (take_axis(FUNCTION, args, AXIS, self->array.tensor, &self->axis) != 0) return -1;
  self->axis_number = args[AXIS].v_int64 + (args[AXIS].v_int64 < 0 ? self->array.tensor->ndim : 0);
  return 0;
}

static int find(struct slices *self, dso_any *result) {
  size_t count = (size_t)self->axis.length + 1;
  self->order = heap_new_zeroed(5 * count, sizeof *self->order);
  if (self->order == NULL) return raised_format("OutOfMemoryError", "%s: no memory", FUNCTION);
  self->firsts = self->order + 2 * count;
  self->counts = self->order + 3 * count;
  self->inverse = self->order + 4 * count;
  sort_slices(self);
  group(self);
  if (!self->wants[SORTED]) order_by_first(self);
  int status = make_result(self, result);
  free(self->order);
  return status;
}

GLOBAL_FUNCTION(global_unique) {
  struct slices self = {.copy = NULL};
  (void)handle;
  int status = take(&self, args, num_args);
  if (status == 0) status = find(&self, result);
  if (self.copy != NULL) object_release(self.copy);
  return status;
}
