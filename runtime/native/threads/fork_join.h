/* One launch, as pool.c, barrier.c and its workers see it. No Python.h. */
#ifndef DSO_PACKER_THREADS_FORK_JOIN_H
#define DSO_PACKER_THREADS_FORK_JOIN_H

#include <stdatomic.h>
#include <stdint.h>

#include "threads/pool.h"

struct fork_join {
  dso_parallel_task task;
  void *data;
  struct parallel_group_env env;
  int num_threads; /* the launcher and its workers */
  uint32_t forks;  /* team_forks() when it began */

  /* Workers that are not through, and whether the launcher sleeps until they are: a futex. */
  _Alignas(64) _Atomic uint32_t busy;

  _Alignas(64) _Atomic int64_t next; /* the first task that is nobody's yet */
  _Atomic int has_failed;
  char *error; /* of the first failure (fork_join_error); NULL: it is in the launcher's own slot */

  /* The barrier: who waits there, how often all have passed, which tasks will never come again. */
  _Alignas(64) _Atomic int32_t arrived;
  _Atomic uint32_t passed;
  _Atomic int32_t ended;
  _Atomic uint32_t event; /* a futex: something of the above has changed */
  _Atomic int32_t sleepers;
};

/* Kind NUL message NUL, as one block to be freed; NULL without memory. */
char *fork_join_error(const char *kind, const char *message);

/* The launch has failed: it keeps the error of the first who says so, and frees any other. */
void fork_join_fail(struct fork_join *group, char *error);

/* A task is over: those who wait for it at the barrier are told. */
void barrier_end_task(struct fork_join *group);

#endif
