/* Threads begin parallel loops of Numba at once: for ThreadSanitizer and AddressSanitizer.
 *
 *     numba_loops ROUNDS */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "threads/launch.h"

#include "array.h"
#include "calls.h"
#include "pending.h"
#include "parallel.h"
#include "random.h"

enum { THREADS = 4, PARTS = 5, ITEMS = 103 };

struct group;
extern int (*__TVMBackendParallelLaunch)(int (*task)(int, struct group *, void *), void *, int);

/* The functions of both have the same type but for the name of the group. */
static int launch(int (*task)(int, struct group *, void *), void *data, int num_task) {
  return parallel_launch((dso_parallel_task)(void (*)(void))task, data, num_task);
}

static int rounds;

static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void run(nb_kernel kernel, void *data, int64_t items) {
  char *args[1] = {0};
  int64_t dims[1] = {items}, steps[1] = {1};
  numba_parallel_for(kernel, args, dims, steps, data, 0, 1, PARTS);
}

/* Shared memory with a count of references, a place for each part, a state of random numbers. */
struct shared {
  nrt_meminfo *meminfo;
  int64_t sums[PARTS];
};

static void add(char **args, const int64_t *dims, const int64_t *steps, void *data) {
  struct shared *shared = data;
  int64_t first = (int64_t)(intptr_t)args[0];
  const int64_t *items = shared->meminfo->data;
  (void)steps;
  for (int64_t i = first; i < first + dims[0]; i++) {
    NRT_MemInfo_acquire(shared->meminfo);
    shared->sums[get_thread_id()] += items[i];
    NRT_MemInfo_release(shared->meminfo);
  }
  numba_rnd_shuffle(numba_get_np_random_state());
}

static void sum_once(void) {
  struct shared shared = {.meminfo = NRT_MemInfo_alloc_aligned(ITEMS * sizeof(int64_t), 64)};
  int64_t *items = shared.meminfo->data, total = 0;
  for (int64_t i = 0; i < ITEMS; i++) items[i] = i;
  run(add, &shared, ITEMS);
  for (int i = 0; i < PARTS; i++) total += shared.sums[i];
  if (total != (int64_t)ITEMS * (ITEMS - 1) / 2) give_up("a wrong sum");
  if (shared.meminfo->refct != 1) give_up("a wrong count of references");
  NRT_MemInfo_release(shared.meminfo);
}

static void nest(char **args, const int64_t *dims, const int64_t *steps, void *data) {
  int64_t id = get_thread_id();
  (void)args, (void)steps, (void)data;
  for (int64_t i = 0; i < dims[0]; i++) sum_once();
  if (get_thread_id() != id) give_up("another number after an inner loop");
}

static void fail(char **args, const int64_t *dims, const int64_t *steps, void *data) {
  static const int error;
  (void)args, (void)dims, (void)steps, (void)data;
  nb_note((const struct nb_error *)(const void *)&error);
}

/* ---- Memory of a call: items that the call made are replaced by items that the parts made, which
 * raise while they hold one more; the list of the items is released with them. */

static void replace(char **args, const int64_t *dims, const int64_t *steps, void *data) {
  nrt_meminfo **items = data;
  int64_t first = (int64_t)(intptr_t)args[0];
  (void)steps;
  for (int64_t i = first; i < first + dims[0]; i++) {
    NRT_MemInfo_release(items[i]);
    items[i] = NRT_MemInfo_alloc_aligned(64, 64);
    (void)NRT_Allocate(10);
    if (i % 10 == 0) nb_caught();
  }
}

static void release_items(void *data, size_t size, void *info) {
  nrt_meminfo **items = data;
  (void)info;
  for (size_t i = 0; i < size / sizeof *items; i++) NRT_MemInfo_release(items[i]);
}

/* LeakSanitizer finds what stays; the kept item is the result. */
static void call_once(int is_failed) {
  nrt_call memory;
  nrt_call_begin(&memory);
  nrt_meminfo *list = NRT_MemInfo_alloc_dtor(ITEMS * sizeof(void *), release_items);
  nrt_meminfo **items = list->data, *kept;
  for (int64_t i = 0; i < ITEMS; i++) items[i] = NRT_MemInfo_alloc_aligned(32, 32);
  run(replace, items, ITEMS);
  run(replace, items, ITEMS);
  kept = items[7];
  NRT_MemInfo_acquire(kept);
  NRT_MemInfo_acquire(items[8]);
  if (!is_failed) {
    nrt_call_keep(kept);
    NRT_MemInfo_release(list);
  }
  nrt_call_end(&memory, is_failed);
  if (is_failed) return;
  if (kept->refct != 1) give_up("a wrong count of a result");
  NRT_MemInfo_release(kept);
}

static void *work(void *number) {
  set_num_threads(PARTS);
  set_parallel_chunksize((uint64_t)(intptr_t)number);
  for (int i = 0; i < rounds; i++) {
    sum_once();
    run(nest, NULL, PARTS);
    run(fail, NULL, PARTS);
    call_once(i % 2);
    if (nb_pending_replace(NULL) == NULL) give_up("no exception");
    if (nb_pending_replace(NULL) != NULL) give_up("an exception remains");
  }
  if (get_parallel_chunksize() != (uint64_t)(intptr_t)number) give_up("another thread's chunks");
  return NULL;
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  if (argc < 2) give_up("expected ROUNDS");
  rounds = atoi(argv[1]);
  __TVMBackendParallelLaunch = launch;
  (void)setenv("TVM_NUM_THREADS", "3", 1);
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  printf("%d threads, %d rounds each\n", THREADS, rounds);
  return 0;
}
