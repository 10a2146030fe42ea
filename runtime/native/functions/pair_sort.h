/* The functions of pairs.h for one type of pair. Included by pair_sort.c once for each type, with
 * PAIR (the type) and NAME(x) (a function's name) defined. */

static inline int NAME(is_less)(struct PAIR a, struct PAIR b, enum pair_order order) {
  if (order == BY_KEY_AND_INDEX && a.key == b.key) return a.index < b.index;
  return a.key < b.key;
}

/* ---- Merge sort: runs of RUN pairs by insertion, then merges of twice the length each */

static void NAME(insert_each)(struct PAIR *pairs, int64_t count, enum pair_order order) {
  for (int64_t i = 1; i < count; i++) {
    struct PAIR moved = pairs[i];
    int64_t at = i;
    if (NAME(is_less)(moved, pairs[0], order)) {
      memmove(pairs + 1, pairs, (size_t)i * sizeof *pairs);
      at = 0;
    } else {
      for (; at > 0 && NAME(is_less)(moved, pairs[at - 1], order); at--) pairs[at] = pairs[at - 1];
    }
    pairs[at] = moved;
  }
}

static struct PAIR *NAME(merge)(const struct PAIR *a, const struct PAIR *a_end,
                                const struct PAIR *b, const struct PAIR *b_end, struct PAIR *to,
                                enum pair_order order) {
  while (a != a_end && b != b_end) *to++ = NAME(is_less)(*b, *a, order) ? *b++ : *a++;
  memmove(to, a, (size_t)(a_end - a) * sizeof *to);
  to += a_end - a;
  memmove(to, b, (size_t)(b_end - b) * sizeof *to);
  return to + (b_end - b);
}

static void NAME(merge_runs)(const struct PAIR *from, int64_t count, struct PAIR *to, int64_t run,
                             enum pair_order order) {
  while (count >= 2 * run) {
    to = NAME(merge)(from, from + run, from + run, from + 2 * run, to, order);
    from += 2 * run;
    count -= 2 * run;
  }
  int64_t middle = count < run ? count : run;
  (void)NAME(merge)(from, from + middle, from + middle, from + count, to, order);
}

static void NAME(sort_half)(struct PAIR *pairs, int64_t count, struct PAIR *room,
                            enum pair_order order) {
  for (int64_t i = 0; i < count; i += RUN)
    NAME(insert_each)(pairs + i, count - i < RUN ? count - i : RUN, order);
  for (int64_t run = RUN; run < count; run *= 4) {
    NAME(merge_runs)(pairs, count, room, run, order);
    NAME(merge_runs)(room, count, pairs, 2 * run, order);
  }
}

/* Merge two halves from their ends; the second one was copied to `room`. */
static void NAME(merge_backward)(struct PAIR *pairs, int64_t first, const struct PAIR *room,
                                 int64_t second, enum pair_order order) {
  struct PAIR *to = pairs + first + second;
  while (first > 0 && second > 0)
    *--to =
        NAME(is_less)(room[second - 1], pairs[first - 1], order) ? pairs[--first] : room[--second];
  if (second > 0) memcpy(pairs, room, (size_t)second * sizeof *pairs);
}

void NAME(stable_sort)(struct PAIR *pairs, int64_t count, struct PAIR *room,
                       enum pair_order order) {
  int64_t first = (count + 1) / 2, second = count - first;
  if (count < 2) return;
  NAME(sort_half)(pairs, first, room, order);
  NAME(sort_half)(pairs + first, second, room, order);
  if (first <= second) {
    memcpy(room, pairs, (size_t)first * sizeof *pairs);
    (void)NAME(merge)(room, room + first, pairs + first, pairs + count, pairs, order);
  } else {
    memcpy(room, pairs + first, (size_t)second * sizeof *pairs);
    NAME(merge_backward)(pairs, first, room, second, order);
  }
}

/* ---- Heaps: the largest pair is the first */

static void NAME(sift_up)(struct PAIR *heap, int64_t hole, int64_t top, struct PAIR moved,
                          enum pair_order order) {
  while (hole > top && NAME(is_less)(heap[(hole - 1) / 2], moved, order)) {
    heap[hole] = heap[(hole - 1) / 2];
    hole = (hole - 1) / 2;
  }
  heap[hole] = moved;
}

/* Fill a hole with the larger child of each level, then let `moved` rise from the last hole. */
static void NAME(sift_down)(struct PAIR *heap, int64_t hole, int64_t count, struct PAIR moved,
                            enum pair_order order) {
  int64_t top = hole;
  while (hole < (count - 1) / 2) {
    int64_t child = 2 * hole + 2;
    if (NAME(is_less)(heap[child], heap[child - 1], order)) child--;
    heap[hole] = heap[child];
    hole = child;
  }
  if (count % 2 == 0 && hole == (count - 2) / 2) {
    heap[hole] = heap[2 * hole + 1];
    hole = 2 * hole + 1;
  }
  NAME(sift_up)(heap, hole, top, moved, order);
}

static void NAME(build_heap)(struct PAIR *heap, int64_t count, enum pair_order order) {
  for (int64_t i = count / 2 - 1; count >= 2 && i >= 0; i--)
    NAME(sift_down)(heap, i, count, heap[i], order);
}

void NAME(make_heap)(struct PAIR *heap, int64_t count) {
  NAME(build_heap)(heap, count, BY_KEY_AND_INDEX);
}

void NAME(heap_replace)(struct PAIR *heap, int64_t count, struct PAIR added) {
  NAME(sift_up)(heap, count, 0, added, BY_KEY_AND_INDEX);
  NAME(sift_down)(heap, 0, count, heap[count], BY_KEY_AND_INDEX);
}
