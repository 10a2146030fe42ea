/* Stable sort, heaps and introsort of pairs, with the comparisons of libstdc++ in its order. */
#include "functions/pairs.h"

#include <string.h>

enum { RUN = 7, SMALL = 16 }; /* libstdc++: _S_chunk_size, _S_threshold */

#define PAIR int_pair
#define NAME(x) int_##x
#include "functions/pair_sort.h"
#undef PAIR
#undef NAME

#define PAIR real_pair
#define NAME(x) real_##x
#include "functions/pair_sort.h"

/* ---- std::sort: quicksort with a median of three, heap sort at the depth limit, insertion at the
 * end */

static int less(const struct real_pair *a, const struct real_pair *b) { return a->key < b->key; }

static void swap(struct real_pair *a, struct real_pair *b) {
  struct real_pair kept = *a;
  *a = *b;
  *b = kept;
}

static struct real_pair *median(struct real_pair *a, struct real_pair *b, struct real_pair *c) {
  if (less(a, b)) {
    if (less(b, c)) return b;
    return less(a, c) ? c : a;
  }
  if (less(a, c)) return a;
  return less(b, c) ? c : b;
}

/* Divide pairs[1:count] by the first pair; return the index where the second part begins. The
 * bounds of both loops are reached only with NaN. */
static int64_t divide(struct real_pair *pairs, int64_t count) {
  int64_t low = 1, high = count;
  for (;; low++) {
    while (low < count && less(&pairs[low], pairs)) low++;
    for (high--; high > 0 && less(pairs, &pairs[high]);) high--;
    if (low >= high) return low;
    swap(&pairs[low], &pairs[high]);
  }
}

static void heap_sort(struct real_pair *pairs, int64_t count) {
  real_build_heap(pairs, count, BY_KEY);
  for (int64_t last = count - 1; last > 0; last--) {
    struct real_pair moved = pairs[last];
    pairs[last] = pairs[0];
    real_sift_down(pairs, 0, last, moved, BY_KEY);
  }
}

/* NOLINTNEXTLINE(misc-no-recursion) at most twice the logarithm of the count */
static void partition(struct real_pair *pairs, int64_t count, int depth) {
  while (count > SMALL) {
    if (depth-- == 0) {
      heap_sort(pairs, count);
      return;
    }
    swap(pairs, median(&pairs[1], &pairs[count / 2], &pairs[count - 1]));
    int64_t cut = divide(pairs, count);
    partition(pairs + cut, count - cut, depth);
    count = cut;
  }
}

void real_sort(struct real_pair *pairs, int64_t count) {
  int depth = 0;
  for (int64_t left = count; left > 1; left /= 2) depth += 2;
  partition(pairs, count, depth);
  real_insert_each(pairs, count < SMALL ? count : SMALL, BY_KEY);
  for (int64_t i = SMALL; i < count; i++) {
    struct real_pair moved = pairs[i];
    int64_t at = i;
    for (; at > 0 && less(&moved, &pairs[at - 1]); at--) pairs[at] = pairs[at - 1];
    pairs[at] = moved;
  }
}
