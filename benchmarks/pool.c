/* Timed parallel launches, with the pool that the loader of this library provides, or with another
 * launch function of TVM's signature. */
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>

#include "dso_packer.h"

typedef struct {
  void *sync_handle;
  int32_t num_task;
} group;

typedef int (*task)(int task_id, group *env, void *data);
typedef int (*launch)(task task, void *data, int num_task);
typedef int (*barrier)(int task_id, group *env);

DSO_EXPORT launch __TVMBackendParallelLaunch;
DSO_EXPORT barrier __TVMBackendParallelBarrier;

enum { WORK_NS = 50000 };

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int do_nothing(int task_id, group *env, void *data) {
  (void)task_id, (void)env, (void)data;
  return 0;
}

static int wait_for_all(int task_id, group *env, void *data) {
  return (*(barrier *)data)(task_id, env);
}

/* One thread's share of the work: all threads together have twice WORK_NS. */
static int work(int task_id, group *env, void *data) {
  int64_t end = now_ns() + 2 * WORK_NS / env->num_task;
  (void)task_id, (void)data;
  while (now_ns() < end) continue;
  return 0;
}

static const task tasks[] = {do_nothing, wait_for_all, work};

/* The nanoseconds that `rounds` launches of a task on all threads take, with a pause of `pause`
 * microseconds before each. launch_at and barrier_at are addresses, or 0 for the loader's own. */
int64_t measure(int64_t kind, int64_t rounds, int64_t pause, int64_t launch_at, int64_t barrier_at) {
  launch run = launch_at ? (launch)(intptr_t)launch_at : __TVMBackendParallelLaunch;
  barrier wait = barrier_at ? (barrier)(intptr_t)barrier_at : __TVMBackendParallelBarrier;
  int64_t sum = 0;
  for (int64_t i = 0; i < rounds; i++) {
    if (pause > 0) usleep((useconds_t)pause);
    int64_t start = now_ns();
    if (run(tasks[kind], &wait, 0) != 0) return -1;
    sum += now_ns() - start;
  }
  return sum;
}
