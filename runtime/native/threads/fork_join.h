/* One launch of parallel tasks: the state that launch.c, barrier.c and the workers share. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "threads/launch.h"

struct fork_join {
  dso_parallel_task task;
  void *data;
  struct parallel_group_env env;
  int num_threads; /* the launcher and its workers */
  uint32_t forks;  /* team_forks() at the start of the launch */

  /* A futex: the number of workers that have not finished, and a bit that is set while the launcher
   * sleeps until they have. */
  _Alignas(64) _Atomic uint32_t busy;

  _Alignas(64) _Atomic int64_t next; /* the first task that is not assigned yet */
  _Atomic int has_failed;
  char *error; /* of the first failure; NULL: it is in the error slot of the launcher's thread */

  /* The barrier: the number of tasks that wait there, how often all have passed, and the number of
   * tasks that have ended. */
  _Alignas(64) _Atomic int32_t arrived;
  _Atomic uint32_t passed;
  _Atomic int32_t ended;
  _Atomic uint32_t event; /* a futex: incremented when one of the above changes */
  _Atomic int32_t sleepers;
};

/* "<kind>\0<message>\0" in one block, which the caller frees; NULL if memory is exhausted. */
char *fork_join_error(const char *kind, const char *message);

/* Mark the launch as failed. It takes over the first error, and frees all later ones. */
void fork_join_fail(struct fork_join *group, char *error);

/* Record that a task has ended, and wake the tasks that wait for it at the barrier. */
void barrier_end_task(struct fork_join *group);
