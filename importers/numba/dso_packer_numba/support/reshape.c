/* Another shape of an array that shares its memory. */
#include <stdint.h>

#ifndef NB_VISIBLE /* for tests */
#pragma GCC visibility push(hidden)
#endif

enum { MAX_DIMS = 64 };

/* The dimensions of an array from the slowest to the fastest, in the order of the elements. */
struct dims {
  int64_t count;
  int64_t extents[MAX_DIMS];
  int64_t strides[MAX_DIMS];
};

static int64_t product(int64_t count, const int64_t *extents) {
  int64_t total = 1;
  for (int64_t i = 0; i < count; i++) total *= extents[i];
  return total;
}

/* Dimensions of one element do not matter: they are left out. */
static void take(struct dims *old, int64_t ndim, const int64_t *shape, const int64_t *strides,
                 int is_f_order) {
  old->count = 0;
  for (int64_t i = 0; i < ndim; i++) {
    int64_t from = is_f_order ? ndim - 1 - i : i;
    if (shape[from] == 1) continue;
    old->extents[old->count] = shape[from];
    old->strides[old->count++] = strides[from];
  }
}

/* Split the old dimensions first .. last, which must have no gaps, into the new ones: 1, or 0
 * if there is a gap. */
static int split(const struct dims *old, int64_t first, int64_t last, struct dims *made,
                 int64_t new_first, int64_t new_last) {
  for (int64_t i = first; i < last; i++)
    if (old->strides[i] != old->extents[i + 1] * old->strides[i + 1]) return 0;
  int64_t stride = old->strides[last];
  for (int64_t i = new_last; i >= new_first; i--) {
    made->strides[i] = stride;
    stride *= made->extents[i];
  }
  return 1;
}

/* Match groups of old and new dimensions with the same number of elements, from the fastest to the
 * slowest or the reverse: NumPy begins at the first dimension of the shape. */
static int match(const struct dims *old, struct dims *made, int step) {
  int64_t i = step > 0 ? 0 : old->count - 1, j = step > 0 ? 0 : made->count - 1;
  while (i >= 0 && i < old->count && j >= 0 && j < made->count) {
    int64_t first = i, new_first = j, size = old->extents[i], new_size = made->extents[j];
    while (size != new_size) {
      if (new_size < size) new_size *= made->extents[j += step];
      else size *= old->extents[i += step];
    }
    int done = step > 0 ? split(old, first, i, made, new_first, j)
                        : split(old, i, first, made, j, new_first);
    if (!done) return -1;
    i += step;
    j += step;
  }
  return (int)(step > 0 ? j : made->count - 1 - j); /* the number of new dimensions with strides */
}

int numba_attempt_nocopy_reshape(int64_t ndim, const int64_t *shape, const int64_t *strides,
                                 int64_t new_ndim, const int64_t *new_shape, int64_t *new_strides,
                                 int64_t itemsize, int is_f_order);

/* Store the strides of the new shape: 1, or 0 if a copy is needed. With `is_f_order`, elements are
 * in Fortran order in both shapes, as in NumPy. */
int numba_attempt_nocopy_reshape(int64_t ndim, const int64_t *shape, const int64_t *strides,
                                 int64_t new_ndim, const int64_t *new_shape, int64_t *new_strides,
                                 int64_t itemsize, int is_f_order) {
  struct dims old, made = {.count = new_ndim};
  if (ndim > MAX_DIMS || new_ndim > MAX_DIMS) return 0;
  take(&old, ndim, shape, strides, is_f_order);
  int64_t total = product(new_ndim, new_shape);
  if (total != product(old.count, old.extents)) return 0;
  for (int64_t i = 0; i < new_ndim; i++) {
    made.extents[i] = new_shape[is_f_order ? new_ndim - 1 - i : i];
    made.strides[i] = itemsize;
  }
  int64_t found = total == 0 ? 0 : match(&old, &made, is_f_order ? -1 : 1);
  if (found < 0) return 0;
  for (int64_t i = 0; i < new_ndim; i++)
    new_strides[i] = made.strides[is_f_order ? new_ndim - 1 - i : i];
  if (total == 0) return 1;
  /* The rest has one element each. */
  int64_t rest = found > 0 ? new_strides[found - 1] : itemsize;
  if (is_f_order && found > 0) rest *= new_shape[found - 1];
  for (int64_t i = found; i < new_ndim; i++) new_strides[i] = rest;
  return 1;
}
