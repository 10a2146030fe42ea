/* The barrier between the tasks of one launch. */
#include <limits.h>
#include <stdio.h>

#include "abi/futex.h"
#include "threads/fork_join.h"
#include "abi/raised.h"
#include "threads/team.h"

static void wake_waiters(struct fork_join *group) {
  atomic_fetch_add(&group->event, 1);
  if (atomic_load(&group->sleepers) > 0) futex_wake(&group->event, INT_MAX);
}

void barrier_end_task(struct fork_join *group) {
  atomic_fetch_add(&group->ended, 1);
  if (atomic_load(&group->arrived) > 0) wake_waiters(group);
}

/* The launch fails even if the task ignores the barrier's status. */
static int fail(struct fork_join *group, const char *text) {
  fork_join_fail(group, fork_join_error("RuntimeError", text));
  return raised_format("RuntimeError", "%s", text);
}

static int refuse(struct fork_join *group) {
  char text[192];
  snprintf(text, sizeof text,
           "barrier: %d tasks on %d threads cannot all wait at once, expected at most as many "
           "tasks as threads; launch 0 tasks for one per thread, or set TVM_NUM_THREADS",
           group->env.num_task, group->num_threads);
  return fail(group, text);
}

static int give_up(struct fork_join *group, int task_id) {
  char text[96];
  snprintf(text, sizeof text,
           "barrier: task %d waits for a task that ended without reaching the barrier", task_id);
  return fail(group, text);
}

/* Return 1 if a task ended without reaching this barrier. `passed` is read again, because a task
 * may end after all tasks passed the barrier. In a forked child the tasks of other threads have
 * ended, too. */
static int is_task_missing(struct fork_join *group, uint32_t passed) {
  if (atomic_load(&group->ended) == 0 && team_forks() == group->forks) return 0;
  return atomic_load(&group->passed) == passed;
}

static int wait_here(struct fork_join *group, uint32_t passed, int task_id) {
  for (;;) {
    uint32_t event = atomic_load(&group->event);
    if (atomic_load(&group->passed) != passed) return 0;
    if (is_task_missing(group, passed)) return give_up(group, task_id);
    if (spin_while(&group->event, event, SPIN_FOR_OTHERS_NS)) continue;
    atomic_fetch_add(&group->sleepers, 1);
    futex_wait(&group->event, event);
    atomic_fetch_sub(&group->sleepers, 1);
  }
}

int parallel_barrier(int task_id, struct parallel_group_env *env) {
  struct fork_join *group = env->sync_handle;
  if (env->num_task == 1) return 0;
  if (group->num_threads < env->num_task) return refuse(group);
  uint32_t passed = atomic_load(&group->passed);
  if (atomic_fetch_add(&group->arrived, 1) + 1 < env->num_task)
    return wait_here(group, passed, task_id);
  atomic_store(&group->arrived, 0);
  atomic_fetch_add(&group->passed, 1);
  wake_waiters(group);
  return 0;
}
