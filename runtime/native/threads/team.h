/* The threads behind pool.h: how many, and who is idle. No Python.h. */
#ifndef DSO_PACKER_THREADS_TEAM_H
#define DSO_PACKER_THREADS_TEAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct fork_join;

/* A thread that waits for a task. Whoever moves the state from ASSIGNED to AWAKE runs the task: the
 * worker that takes it, or the launcher that takes it back. */
enum { WORKER_AWAKE, WORKER_ASLEEP, WORKER_ASSIGNED };

struct worker {
  _Alignas(64) _Atomic uint32_t state; /* a futex; a cache line of its own */
  int task_id;
  struct fork_join *group;
  struct worker *next; /* in the list of idle ones, or in a launcher's team */
  pthread_t thread;
  _Atomic int processor; /* where it was when it began to wait */
};

/* The threads that one launch uses, its own included: TVM_NUM_THREADS, else OMP_NUM_THREADS, else
 * the processors that this process may run on. */
int team_size(void);

/* Up to `count` workers, idle or new, linked by `next`; *taken says how many. */
struct worker *team_take(int count, int *taken);
void team_give_back(struct worker *workers);

void worker_assign(struct worker *worker, struct fork_join *group, int task_id);

/* 1 when the worker had not begun, and will not. */
int worker_revoke(struct worker *worker);

/* How often the process forked since the first worker: the child has none of the workers. */
uint32_t team_forks(void);

/* What a worker does with its task (pool.c). */
void launch_work(struct fork_join *group, int task_id);

#endif
