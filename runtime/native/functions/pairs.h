/* Sorting pairs of a key and an index in the order that libstdc++ gives.
 *
 * TVM sorts with std::stable_sort, std::sort and the heap functions of its C++ library. Where keys
 * are NaN, or where equal keys meet std::sort, the order depends on the sequence of comparisons.
 * These functions make the same sequence, so that results are equal to TVM's. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct real_pair {
  double key;
  int64_t index;
};

struct int_pair {
  int64_t key;
  int64_t index;
};

/* The order of two pairs: by key alone; or by key, then by index. */
enum pair_order { BY_KEY, BY_KEY_AND_INDEX };

/* std::stable_sort, ascending. `room` has space for (count + 1) / 2 pairs. */
void real_stable_sort(struct real_pair *pairs, int64_t count, struct real_pair *room,
                      enum pair_order order);
void int_stable_sort(struct int_pair *pairs, int64_t count, struct int_pair *room,
                     enum pair_order order);

/* std::make_heap, and the replacement of the first pair of a heap by another one (push_heap and
 * pop_heap), both by key and index. The heap has space for one more pair. */
void real_make_heap(struct real_pair *heap, int64_t count);
void int_make_heap(struct int_pair *heap, int64_t count);
void real_heap_replace(struct real_pair *heap, int64_t count, struct real_pair added);
void int_heap_replace(struct int_pair *heap, int64_t count, struct int_pair added);

/* std::sort, ascending by key. With NaN among the keys it stays within the array. */
void real_sort(struct real_pair *pairs, int64_t count);
