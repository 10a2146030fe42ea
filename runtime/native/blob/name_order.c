/* Sorted names. A hash table would be faster, but names of unknown origin can be chosen to
 * collide. */
#include "blob/name_order.h"

#include <stdlib.h>
#include <string.h>

#include "abi/heap.h"
#include "abi/raised.h"

static int compare(const void *left, const void *right) {
  const struct name *a = left, *b = right;
  int order = span_compare(a->text, b->text);
  return order != 0 ? order : (a->place > b->place) - (a->place < b->place);
}

int name_order_make(struct name_order *order, const void *spans, size_t count, size_t stride) {
  *order = (struct name_order){0};
  struct name *sorted = heap_new_zeroed(count + 1, sizeof *sorted);
  if (sorted == NULL) return raised_format("OutOfMemoryError", "no memory for %zu names", count);
  for (size_t i = 0; i < count; i++) {
    memcpy(&sorted[i].text, (const char *)spans + i * stride, sizeof sorted[i].text);
    sorted[i].place = i;
  }
  qsort(sorted, count, sizeof *sorted, compare);
  *order = (struct name_order){count, sorted};
  return 0;
}

void name_order_free(struct name_order *order) {
  free(order->sorted);
  *order = (struct name_order){0};
}

size_t name_order_find(const struct name_order *order, const char *text, size_t nbytes) {
  struct span searched = {text, nbytes};
  size_t low = 0, high = order->count; /* the first that is not less is in [low, high] */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (span_compare(order->sorted[middle].text, searched) < 0) low = middle + 1;
    else high = middle;
  }
  if (low == order->count || span_compare(order->sorted[low].text, searched) != 0) return NO_NAME;
  return order->sorted[low].place;
}

size_t name_order_repeated(const struct name_order *order) {
  size_t first = NO_NAME;
  for (size_t i = 1; i < order->count; i++)
    if (order->sorted[i].place < first &&
        span_compare(order->sorted[i - 1].text, order->sorted[i].text) == 0)
      first = order->sorted[i].place;
  return first;
}
