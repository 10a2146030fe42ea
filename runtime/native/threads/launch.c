/* Launching parallel tasks on the thread pool. */
#include "threads/launch.h"

#include <stdio.h>
#include <string.h>

#include "abi/futex.h"
#include "threads/fork_join.h"
#include "abi/object.h"
#include "abi/raised.h"
#include "threads/team.h"
#include "abi/tvm_ffi.h"

/* A bit of fork_join.busy; the other bits count workers. */
static const uint32_t LAUNCHER_SLEEPS = (uint32_t)1 << 31;

/* 1 while this thread runs a task of a launch that has workers. */
static _Thread_local int is_in_task;

/* ---- Errors */

char *fork_join_error(const char *kind, const char *message) {
  return raised_text(kind, strlen(kind), message, strlen(message));
}

void fork_join_fail(struct fork_join *group, char *error) {
  if (atomic_exchange(&group->has_failed, 1) == 0) group->error = error;
  else raised_free(error);
}

/* Take this thread's error from a real libtvm_ffi, if there is one; or NULL. */
static char *take_tvm_ffi_error(void) {
  dso_object *object = tvm_ffi_take_error();
  if (object == NULL) return NULL;
  const tvm_ffi_error_cell *cell = tvm_ffi_error(object);
  char *error = raised_text(cell->kind.data, (size_t)cell->kind.size, cell->message.data,
                            (size_t)cell->message.size);
  object_release(object);
  return error;
}

static char *silent_error(int task_id, int status) {
  char text[80];
  snprintf(text, sizeof text, "parallel task %d returned %d without raising", task_id, status);
  return fork_join_error("RuntimeError", text);
}

static int is_same(const char *kind, const char *message, const char *error) {
  return strcmp(kind, error) == 0 && strcmp(message, error + strlen(error) + 1) == 0;
}

/* Take the error that a task raised in this thread. */
static char *take_error(uint64_t count, int task_id, int status) {
  char *kind = NULL;
  const char *message;
  int taken = raised_take(count, &kind, &message);
  char *forwarded = take_tvm_ffi_error(); /* errors raised here were forwarded there */
  if (taken == 1 || (taken == -1 && forwarded != NULL && is_same(kind, message, forwarded))) {
    raised_free(forwarded); /* a copy of the taken error, whether new or old */
    forwarded = NULL;
  }
  if (taken == 1) return kind;
  if (taken == -1) raised_free(kind);
  return forwarded != NULL ? forwarded : silent_error(task_id, status);
}

/* ---- Tasks */

/* Run a task, or skip it if the launch has failed. An error raised in the launcher's thread stays
 * in its slot: it may be a Python exception, which then reaches the caller unchanged. */
static void run_task(struct fork_join *group, int task_id, int is_launcher) {
  uint64_t count = raised_count();
  if (atomic_load_explicit(&group->has_failed, memory_order_relaxed) == 0) {
    int status = group->task(task_id, &group->env, group->data);
    if (status != 0 && is_launcher && raised_at() > count) fork_join_fail(group, NULL);
    else if (status != 0) fork_join_fail(group, take_error(count, task_id, status));
  }
  barrier_end_task(group);
}

/* If there are more tasks than threads, a thread that has finished a task takes the next one. */
static void run_more(struct fork_join *group, int is_launcher) {
  if (group->num_threads >= group->env.num_task) return;
  for (int64_t id; (id = atomic_fetch_add(&group->next, 1)) < group->env.num_task;)
    run_task(group, (int)id, is_launcher);
}

void fork_join_work(struct fork_join *group, int task_id) {
  is_in_task = 1;
  run_task(group, task_id, 0);
  run_more(group, 0);
  /* From here on the launch may be freed: the launcher continues when no worker is busy. */
  _Atomic uint32_t *busy = &group->busy;
  if (atomic_fetch_sub(busy, 1) == (LAUNCHER_SLEEPS | 1)) futex_wake(busy, 1);
}

/* ---- The launcher */

static void assign_all(struct fork_join *group, struct worker *workers) {
  int task_id = 1;
  for (struct worker *worker = workers; worker != NULL; worker = worker->next)
    worker_assign(worker, group, task_id++);
}

/* Run the tasks that workers have not begun. */
static void run_unbegun(struct fork_join *group, struct worker *workers) {
  for (struct worker *worker = workers; worker != NULL; worker = worker->next) {
    if (!worker_revoke(worker)) continue;
    atomic_fetch_sub(&group->busy, 1);
    run_task(group, worker->task_id, 1);
  }
}

static void wait_for_workers(struct fork_join *group) {
  uint32_t busy;
  while ((busy = atomic_load(&group->busy)) != 0 && team_forks() == group->forks) {
    if (busy == LAUNCHER_SLEEPS) return;
    if (spin_while(&group->busy, busy, SPIN_FOR_OTHERS_NS)) continue;
    if (atomic_compare_exchange_strong(&group->busy, &busy, busy | LAUNCHER_SLEEPS))
      futex_wait(&group->busy, busy | LAUNCHER_SLEEPS);
  }
}

static void run_all(struct fork_join *group, struct worker *workers) {
  int was_in_task = is_in_task;
  is_in_task |= workers != NULL;
  assign_all(group, workers);
  run_task(group, 0, 1);
  run_more(group, 1);
  run_unbegun(group, workers);
  wait_for_workers(group);
  is_in_task = was_in_task;
}

/* A forked child has no workers, so the tasks that they had begun are lost. */
static void give_back(struct fork_join *group, struct worker *workers) {
  if (team_forks() == group->forks) team_give_back(workers);
  else if (group->busy != 0)
    fork_join_fail(group,
                   fork_join_error("RuntimeError", "parallel launch: a task forked the process, "
                                                   "and the child does not run the other tasks"));
}

static int end(struct fork_join *group) {
  char *error = group->error;
  if (error != NULL) raised_set(error, error + strlen(error) + 1);
  raised_free(error);
  return group->has_failed ? -1 : 0;
}

static int refuse(int num_task) {
  return raised_format("ValueError",
                       "parallel launch: expected at least 0 tasks (0: one per thread), found %d",
                       num_task);
}

int parallel_launch(dso_parallel_task task, void *data, int num_task) {
  if (num_task < 0) return refuse(num_task);
  struct fork_join group = {.task = task, .data = data, .forks = team_forks()};
  int size = num_task == 0 && is_in_task ? 1 : team_size(), taken = 0;
  int wanted = num_task > 0 && num_task < size ? num_task : size;
  struct worker *workers = wanted > 1 ? team_take(wanted - 1, &taken) : NULL;
  group.num_threads = 1 + taken;
  group.next = group.num_threads;
  group.busy = (uint32_t)taken;
  group.env = (struct parallel_group_env){.sync_handle = &group,
                                          .num_task = num_task > 0 ? num_task : group.num_threads};
  run_all(&group, workers);
  give_back(&group, workers);
  return end(&group);
}
