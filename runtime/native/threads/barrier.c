#include <limits.h>
#include <stdio.h>

#include "abi/futex.h"
#include "threads/fork_join.h"
#include "abi/raised.h"
#include "threads/team.h"

static void ring(struct launch *launch) {
  atomic_fetch_add(&launch->event, 1);
  if (atomic_load(&launch->sleepers) > 0) futex_wake(&launch->event, INT_MAX);
}

void barrier_end_task(struct launch *launch) {
  atomic_fetch_add(&launch->ended, 1);
  if (atomic_load(&launch->arrived) > 0) ring(launch);
}

/* The launch fails even if the task takes no notice. */
static int fail(struct launch *launch, const char *text) {
  launch_fail(launch, launch_error("RuntimeError", text));
  raised_set("RuntimeError", text);
  return -1;
}

static int refuse(struct launch *launch) {
  char text[192];
  snprintf(text, sizeof text,
           "barrier: %d tasks on %d threads cannot all wait at once, expected at most as many "
           "tasks as threads; launch 0 for as many, or set TVM_NUM_THREADS",
           launch->env.num_task, launch->num_threads);
  return fail(launch, text);
}

static int give_up(struct launch *launch, int task_id) {
  char text[96];
  snprintf(text, sizeof text, "barrier: task %d waits for one that ended without coming here",
           task_id);
  return fail(launch, text);
}

/* Whether a task is over that has not been here: `passed` is read again because a task may be over
 * that all had waited for. In a forked child the tasks of other threads are over, too. */
static int is_hopeless(struct launch *launch, uint32_t passed) {
  if (atomic_load(&launch->ended) == 0 && team_forks() == launch->forks) return 0;
  return atomic_load(&launch->passed) == passed;
}

static int wait_here(struct launch *launch, uint32_t passed, int task_id) {
  for (;;) {
    uint32_t event = atomic_load(&launch->event);
    if (atomic_load(&launch->passed) != passed) return 0;
    if (is_hopeless(launch, passed)) return give_up(launch, task_id);
    if (spin_while(&launch->event, event, SPIN_FOR_OTHERS_NS)) continue;
    atomic_fetch_add(&launch->sleepers, 1);
    futex_wait(&launch->event, event);
    atomic_fetch_sub(&launch->sleepers, 1);
  }
}

int pool_barrier(int task_id, struct parallel_group_env *env) {
  struct launch *launch = env->sync_handle;
  if (env->num_task == 1) return 0;
  if (launch->num_threads < env->num_task) return refuse(launch);
  uint32_t passed = atomic_load(&launch->passed);
  if (atomic_fetch_add(&launch->arrived, 1) + 1 < env->num_task)
    return wait_here(launch, passed, task_id);
  atomic_store(&launch->arrived, 0);
  atomic_fetch_add(&launch->passed, 1);
  ring(launch);
  return 0;
}
