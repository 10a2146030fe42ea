#include "threads/pool.h"

#include <stdio.h>
#include <string.h>

#include "abi/futex.h"
#include "threads/fork_join.h"
#include "abi/object.h"
#include "abi/raised.h"
#include "threads/team.h"
#include "abi/tvm_ffi.h"

/* A bit of launch.busy; the rest counts. */
static const uint32_t LAUNCHER_SLEEPS = (uint32_t)1 << 31;

/* Whether this thread is in a task of a launch that has workers. */
static _Thread_local int is_in_task;

/* ---- Errors */

char *launch_error(const char *kind, const char *message) {
  return raised_text(kind, strlen(kind), message, strlen(message));
}

void launch_fail(struct launch *launch, char *error) {
  if (atomic_exchange(&launch->has_failed, 1) == 0) launch->error = error;
  else raised_free(error);
}

/* What a real libtvm_ffi has of this thread, which is forgotten there; or NULL. */
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
  return launch_error("RuntimeError", text);
}

static int is_same(const char *kind, const char *message, const char *error) {
  return strcmp(kind, error) == 0 && strcmp(message, error + strlen(error) + 1) == 0;
}

/* What a task raised in this thread, which is forgotten here. */
static char *take_error(uint64_t count, int task_id, int status) {
  char *kind = NULL;
  const char *message;
  int taken = raised_take(count, &kind, &message);
  char *forwarded = take_tvm_ffi_error(); /* ours also went there */
  if (taken == 1 || (taken == -1 && forwarded != NULL && is_same(kind, message, forwarded))) {
    raised_free(forwarded); /* the copy of ours, be that new or old */
    forwarded = NULL;
  }
  if (taken == 1) return kind;
  if (taken == -1) raised_free(kind);
  return forwarded != NULL ? forwarded : silent_error(task_id, status);
}

/* ---- Tasks */

/* Run a task, or leave it out when the launch has failed. What is raised in the launcher's own
 * thread stays there: it may be a Python exception, and will arrive as itself. */
static void run_task(struct launch *launch, int task_id, int is_launcher) {
  uint64_t count = raised_count();
  if (atomic_load_explicit(&launch->has_failed, memory_order_relaxed) == 0) {
    int status = launch->task(task_id, &launch->env, launch->data);
    if (status != 0 && is_launcher && raised_at() > count) launch_fail(launch, NULL);
    else if (status != 0) launch_fail(launch, take_error(count, task_id, status));
  }
  barrier_end_task(launch);
}

/* More tasks than threads: whoever is through takes the next. */
static void run_more(struct launch *launch, int is_launcher) {
  if (launch->num_threads >= launch->env.num_task) return;
  for (int64_t id; (id = atomic_fetch_add(&launch->next, 1)) < launch->env.num_task;)
    run_task(launch, (int)id, is_launcher);
}

void launch_work(struct launch *launch, int task_id) {
  is_in_task = 1;
  run_task(launch, task_id, 0);
  run_more(launch, 0);
  /* From here on the launch may be gone: its launcher goes on when none is busy. */
  _Atomic uint32_t *busy = &launch->busy;
  if (atomic_fetch_sub(busy, 1) == (LAUNCHER_SLEEPS | 1)) futex_wake(busy, 1);
}

/* ---- The launcher */

static void assign_all(struct launch *launch, struct worker *workers) {
  int task_id = 1;
  for (struct worker *worker = workers; worker != NULL; worker = worker->next)
    worker_assign(worker, launch, task_id++);
}

/* What a worker has not begun. */
static void run_unbegun(struct launch *launch, struct worker *workers) {
  for (struct worker *worker = workers; worker != NULL; worker = worker->next) {
    if (!worker_revoke(worker)) continue;
    atomic_fetch_sub(&launch->busy, 1);
    run_task(launch, worker->task_id, 1);
  }
}

static void wait_for_workers(struct launch *launch) {
  uint32_t busy;
  while ((busy = atomic_load(&launch->busy)) != 0 && team_forks() == launch->forks) {
    if (busy == LAUNCHER_SLEEPS) return;
    if (spin_while(&launch->busy, busy, SPIN_FOR_OTHERS_NS)) continue;
    if (atomic_compare_exchange_strong(&launch->busy, &busy, busy | LAUNCHER_SLEEPS))
      futex_wait(&launch->busy, busy | LAUNCHER_SLEEPS);
  }
}

static void run_all(struct launch *launch, struct worker *workers) {
  int was_in_task = is_in_task;
  is_in_task |= workers != NULL;
  assign_all(launch, workers);
  run_task(launch, 0, 1);
  run_more(launch, 1);
  run_unbegun(launch, workers);
  wait_for_workers(launch);
  is_in_task = was_in_task;
}

/* In a forked child there are no workers, and what they had begun is lost. */
static void give_back(struct launch *launch, struct worker *workers) {
  if (team_forks() == launch->forks) team_give_back(workers);
  else if (launch->busy != 0)
    launch_fail(launch, launch_error("RuntimeError", "parallel launch: a task forked the process, "
                                                     "whose child has none of the other tasks"));
}

static int end(struct launch *launch) {
  char *error = launch->error;
  if (error != NULL) raised_set(error, error + strlen(error) + 1);
  raised_free(error);
  return launch->has_failed ? -1 : 0;
}

static int refuse(int num_task) {
  char text[96];
  snprintf(text, sizeof text,
           "parallel launch: expected at least 0 tasks (0: one per thread), found %d", num_task);
  raised_set("ValueError", text);
  return -1;
}

int pool_launch(dso_parallel_task task, void *data, int num_task) {
  if (num_task < 0) return refuse(num_task);
  struct launch launch = {.task = task, .data = data, .forks = team_forks()};
  int size = num_task == 0 && is_in_task ? 1 : team_size(), taken = 0;
  int wanted = num_task > 0 && num_task < size ? num_task : size;
  struct worker *workers = wanted > 1 ? team_take(wanted - 1, &taken) : NULL;
  launch.num_threads = 1 + taken;
  launch.next = launch.num_threads;
  launch.busy = (uint32_t)taken;
  launch.env = (struct parallel_group_env){
      .sync_handle = &launch, .num_task = num_task > 0 ? num_task : launch.num_threads};
  run_all(&launch, workers);
  give_back(&launch, workers);
  return end(&launch);
}
