/* The division of the iterations of a parallel loop: the same as Numba's, so that reductions have
 * the same bits for the same number of threads. */
#include "parallel.h"

#include <stdlib.h>

enum { MAX_DIMS = 64 };

/* ---- Chunks */

static _Thread_local uint64_t chunksize; /* iterations; 0: as many chunks as threads */

uint64_t set_parallel_chunksize(uint64_t size) {
  uint64_t before = chunksize;
  chunksize = (uint32_t)size; /* some callers pass a number of 32 bits */
  return before;
}

uint64_t get_parallel_chunksize(void) { return chunksize; }

static int64_t length(int64_t first, int64_t last) { return last < first ? 0 : last - first + 1; }

uint64_t get_sched_size(uint64_t num_threads, uint64_t ndim, const int64_t *starts,
                        const int64_t *ends) {
  uint64_t total = 1;
  if (chunksize == 0) return num_threads;
  for (uint64_t i = 0; i < ndim; i++) total *= (uint64_t)length(starts[i], ends[i]);
  uint64_t chunks = total / chunksize;
  return chunks > num_threads ? chunks : num_threads;
}

void *allocate_sched(uint64_t words) {
  void *memory = malloc(words * sizeof(int64_t));
  if (memory == NULL) abort(); /* compiled code does not check it */
  return memory;
}

void deallocate_sched(void *schedule) { free(schedule); }

/* ---- The plan: for each part the first iteration of each dimension, then the last ones */

struct plan {
  uint64_t ndim, parts;
  const int64_t *starts, *ends;
  int64_t *out;
  uint64_t order[MAX_DIMS]; /* the dimensions, the longest first */
  int64_t lengths[MAX_DIMS];
};

static void store(const struct plan *plan, uint64_t part, uint64_t dim, int64_t first,
                  int64_t last) {
  int64_t *row = plan->out + part * 2 * plan->ndim;
  row[dim] = first;
  row[plan->ndim + dim] = last;
}

/* One dimension: parts that differ by one iteration at most. A part without work is 1 .. 0. */
static void divide_one(const struct plan *plan) {
  uint64_t total = (uint64_t)plan->lengths[0], done = 0;
  for (uint64_t part = 0; part < plan->parts; part++) {
    uint64_t left = total - done, count = left == 0 ? 0 : (left - 1) / (plan->parts - part) + 1;
    int64_t first = plan->starts[0] + (int64_t)done;
    if (count == 0) store(plan, part, 0, 1, 0);
    else store(plan, part, 0, first, first + (int64_t)count - 1);
    done += count;
  }
}

/* The number of divisions of a dimension, in proportion to the lengths of it and of those after it.
 * In float, as Numba computes it. */
static uint64_t divisions(const struct plan *plan, uint64_t index, uint64_t parts) {
  int64_t total = 0;
  for (uint64_t i = index; i < plan->ndim; i++)
    if (plan->lengths[plan->order[i]] > 1) total += plan->lengths[plan->order[i]];
  if (total == 0) return parts;
  float share = (float)parts * ((float)plan->lengths[plan->order[index]] / (float)total);
  uint64_t rounded = (uint64_t)((double)share + 0.5);
  return rounded < 1 ? 1 : rounded;
}

/* Store a range of a dimension for all of these parts. */
static void store_all(const struct plan *plan, uint64_t begin, uint64_t count, uint64_t dim,
                      int64_t first, int64_t last) {
  for (uint64_t part = begin; part < begin + count; part++) store(plan, part, dim, first, last);
}

/* Divide the dimensions from `index` on among the parts begin .. begin + count - 1. */
static void divide(const struct plan *plan, uint64_t index, uint64_t begin, uint64_t count) {
  if (index == plan->ndim) return;
  uint64_t dim = plan->order[index], left = count;
  uint64_t number = count == 1 ? 1 : divisions(plan, index, count);
  int64_t first = plan->starts[dim];
  for (uint64_t i = 0; i < number; i++) {
    int is_last = i + 1 == number;
    uint64_t used = is_last ? left : left / (number - i);
    int64_t total = plan->ends[dim] - first + 1;
    float share = (float)used / (float)left;
    int64_t last = is_last ? plan->ends[dim] : first + (int64_t)((float)total * share) - 1;
    uint64_t part = begin + count - left;
    store_all(plan, part, used, dim, first, last);
    divide(plan, index + 1, part, used);
    left -= used;
    first = last + 1;
  }
}

static void sort(struct plan *plan) {
  for (uint64_t i = 0; i < plan->ndim; i++) {
    uint64_t at = i;
    for (; at > 0 && plan->lengths[plan->order[at - 1]] < plan->lengths[i]; at--)
      plan->order[at] = plan->order[at - 1];
    plan->order[at] = i;
  }
}

void do_scheduling_signed(uint64_t ndim, const int64_t *starts, const int64_t *ends, uint64_t parts,
                          int64_t *schedule, int64_t debug) {
  struct plan plan = {
      .ndim = ndim, .parts = parts, .starts = starts, .ends = ends, .out = schedule};
  (void)debug;
  if (parts == 0) return;
  if (ndim > MAX_DIMS) abort(); /* more than NumPy has */
  for (uint64_t i = 0; i < ndim; i++) plan.lengths[i] = length(starts[i], ends[i]);
  sort(&plan);
  if (ndim == 1) divide_one(&plan);
  else divide(&plan, 0, 0, parts);
}

void do_scheduling_unsigned(uint64_t ndim, const int64_t *starts, const int64_t *ends,
                            uint64_t parts, int64_t *schedule, int64_t debug) {
  do_scheduling_signed(ndim, starts, ends, parts, schedule, debug);
}
