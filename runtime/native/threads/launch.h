/* The thread pool that implements TVMBackendParallelLaunch and TVMBackendParallelBarrier.
 *
 * A launch runs its tasks in the launching thread and in workers that it has exclusively. When the
 * launcher has finished its tasks, it also runs the tasks that no worker has begun. Workers are
 * created on demand, spin for 0.2 ms after a launch, and then sleep. */
#pragma once

#include <stdint.h>

/* TVMParallelGroupEnv: what a task receives about its group. */
struct parallel_group_env {
  void *sync_handle;
  int32_t num_task;
};

typedef int (*dso_parallel_task)(int task_id, struct parallel_group_env *env, void *data);

/* Run task(0), ..., task(num_task - 1), and return when all have ended. Returns 0, or -1 with the
 * error of the first failed task raised in this thread; tasks that had not begun by then are
 * skipped. `num_task` 0 means one task per thread (TVM_NUM_THREADS, OMP_NUM_THREADS, or the number
 * of processors), or one task if the caller is itself a task. If there are more tasks than threads,
 * each thread runs several in turn. */
int parallel_launch(dso_parallel_task task, void *data, int num_task);

/* Wait until all tasks of the launch have reached the barrier. Returns 0, or -1 with an error
 * raised if there are more tasks than threads or if a task ended without reaching the barrier; then
 * the launch fails, too. */
int parallel_barrier(int task_id, struct parallel_group_env *env);
