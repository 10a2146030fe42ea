/* Parallel loops on the threads of the loader. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "parallel.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "pending.h"

struct group {
  void *sync_handle;
  int32_t num_task;
};
typedef int (*task)(int id, struct group *group, void *data);

/* A load sets this variable. It is weak, since other code of the library may define it too. */
extern int (*__TVMBackendParallelLaunch)(task task, void *data, int num_task);
__attribute__((weak, visibility("default"))) int (*__TVMBackendParallelLaunch)(task task,
                                                                               void *data,
                                                                               int num_task);

/* ---- Threads */

enum { MAX_THREADS = 256 }; /* of the loader */

struct own {
  int64_t num_threads; /* 0: not set, then that of the process */
  int64_t id;
  int depth; /* of loops in loops */
};
static _Thread_local struct own own;

static int64_t number_in(const char *variable) {
  const char *text = getenv(variable);
  long number = text != NULL ? strtol(text, NULL, 10) : 0;
  return number < MAX_THREADS ? number : MAX_THREADS;
}

static int64_t threads_of_process(void) {
  static const char *const variables[] = {"NUMBA_NUM_THREADS", "TVM_NUM_THREADS",
                                          "OMP_NUM_THREADS"};
  static _Atomic int64_t known;
  int64_t count = atomic_load_explicit(&known, memory_order_relaxed);
  if (count > 0) return count;
  for (size_t i = 0; i < sizeof variables / sizeof *variables && count < 1; i++)
    count = number_in(variables[i]);
  cpu_set_t set;
  if (count < 1) count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  if (count > MAX_THREADS) count = MAX_THREADS;
  atomic_store_explicit(&known, count, memory_order_relaxed);
  return count;
}

int64_t get_num_threads(void) {
  return own.num_threads > 0 ? own.num_threads : threads_of_process();
}

void set_num_threads(int64_t count) { own.num_threads = count; }

int64_t get_thread_id(void) { return own.id; }

/* ---- Loops */

struct loop {
  nb_kernel kernel;
  char **args;
  const int64_t *dims, *steps;
  void *data;
  int64_t inner_ndim, num_arrays, num_threads;
  nrt_call *call, *parts;                   /* the memory of each part; without a call NULL */
  _Atomic(const struct nb_error *) pending; /* of the first part that failed */
};

/* Run the items first .. first + count - 1. */
static void run_items(const struct loop *loop, int64_t first, int64_t count) {
  size_t num_dims = (size_t)loop->inner_ndim + 1, num_arrays = (size_t)loop->num_arrays;
  int64_t *dims = __builtin_alloca(num_dims * sizeof *dims);
  char **args = __builtin_alloca((num_arrays + 1) * sizeof *args);
  memcpy(dims, loop->dims, num_dims * sizeof *dims);
  dims[0] = count;
  for (size_t i = 0; i < num_arrays; i++) args[i] = loop->args[i] + first * loop->steps[i];
  loop->kernel(args, dims, loop->steps, loop->data);
}

static int run_part(int id, struct group *group, void *data) {
  struct loop *loop = data;
  struct own before = own;
  nrt_call *call = nrt_current;
  const struct nb_error *outer = nb_pending_replace(NULL);
  int64_t items = loop->dims[0] / loop->num_threads, more = loop->dims[0] % loop->num_threads;
  int64_t first = id * items + (id < more ? id : more), count = items + (id < more);
  (void)group;
  own = (struct own){.num_threads = loop->num_threads, .id = id, .depth = before.depth + 1};
  nrt_current = loop->call != NULL ? &loop->parts[id] : NULL;
  if (count > 0) run_items(loop, first, count);
  nrt_current = call;
  own = before;
  const struct nb_error *pending = nb_pending_replace(outer), *none = NULL;
  if (pending != NULL) atomic_compare_exchange_strong(&loop->pending, &none, pending);
  return 0;
}

/* All items in this thread, as its part 0. */
static void run_here(struct loop *loop) {
  struct own before = own;
  own = (struct own){.num_threads = loop->num_threads, .id = 0, .depth = before.depth + 1};
  if (loop->dims[0] > 0) run_items(loop, 0, loop->dims[0]);
  own = before;
}

void numba_parallel_for(nb_kernel kernel, char **args, const int64_t *dims, const int64_t *steps,
                        void *data, int64_t inner_ndim, int64_t num_arrays, int64_t num_threads) {
  struct loop loop = {.kernel = kernel,
                      .args = args,
                      .dims = dims,
                      .steps = steps,
                      .data = data,
                      .inner_ndim = inner_ndim,
                      .num_arrays = num_arrays,
                      .num_threads = num_threads};
  if (own.depth > 0 || num_threads <= 1) {
    run_here(&loop);
    return;
  }
  loop.call = nrt_current;
  if (loop.call != NULL) loop.parts = __builtin_alloca((size_t)num_threads * sizeof *loop.parts);
  nrt_parts_begin(loop.call, loop.parts, num_threads);
  if (__TVMBackendParallelLaunch != NULL) {
    (void)__TVMBackendParallelLaunch(run_part, &loop, (int)num_threads);
  } else {
    for (int id = 0; id < num_threads; id++) (void)run_part(id, NULL, &loop);
  }
  nrt_parts_end(loop.call, loop.parts, num_threads);
  const struct nb_error *pending = atomic_load(&loop.pending);
  if (pending != NULL) nb_note(pending);
}
