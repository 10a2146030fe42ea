/* The thread pool behind TVMBackendParallelLaunch and TVMBackendParallelBarrier. No Python.h.
 *
 * A launch runs its tasks in the launching thread and in workers of its own; what a worker has not
 * begun when the launcher is through, the launcher runs itself. Workers are made on first need,
 * spin for 0.2 ms after a launch, and then sleep. */
#ifndef DSO_PACKER_THREADS_POOL_H
#define DSO_PACKER_THREADS_POOL_H

#include <stdint.h>

/* TVMParallelGroupEnv: what a task gets of its group. */
struct parallel_group_env {
  void *sync_handle;
  int32_t num_task;
};

typedef int (*dso_parallel_task)(int task_id, struct parallel_group_env *env, void *data);

/* Run task(0), ..., task(num_task - 1), and return when all are over: 0, or -1 with the error of
 * the first that failed raised in this thread; tasks that had not begun by then are left out.
 * 0 stands for as many tasks as there are threads (TVM_NUM_THREADS, OMP_NUM_THREADS, or the
 * processors), and for one task inside another group. More tasks than threads take turns. */
int pool_launch(dso_parallel_task task, void *data, int num_task);

/* Wait until all tasks of the launch are here; 0, or -1 with an error raised, and the launch will
 * have failed: there are more tasks than threads, or one of them ended without coming here. */
int pool_barrier(int task_id, struct parallel_group_env *env);

#endif
