/* The worker threads of the pool (launch.h): their number, and the list of idle ones. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct fork_join;

/* A worker thread. The thread that changes the state from ASSIGNED to AWAKE runs the task: the
 * worker, or the launcher if it revokes the task. */
enum { WORKER_AWAKE, WORKER_ASLEEP, WORKER_ASSIGNED };

struct worker {
  _Alignas(64) _Atomic uint32_t state; /* a futex, in a separate cache line */
  int task_id;
  struct fork_join *group;
  struct worker *next; /* in the list of idle workers, or in a launcher's team */
  pthread_t thread;
  _Atomic int processor; /* the processor that it ran on when it began to wait */
};

/* The number of threads of one launch, the launcher included: TVM_NUM_THREADS, else
 * OMP_NUM_THREADS, else the number of processors that this process may run on. */
int team_size(void);

/* Set that number before it is used. Returns it as it is then: another one if it was set or used
 * before. */
int team_set_size(int wanted);

/* Take up to `count` workers, idle or new, linked by `next`. *taken is their number. */
struct worker *team_take(int count, int *taken);
void team_give_back(struct worker *workers);

void worker_assign(struct worker *worker, struct fork_join *group, int task_id);

/* Return 1 if the worker had not begun its task; then it will not run it. */
int worker_revoke(struct worker *worker);

/* How often the process forked since the first worker. A forked child has no workers. */
uint32_t team_forks(void);

/* Run a worker's task, and then unassigned tasks of the same launch (launch.c). */
void fork_join_work(struct fork_join *group, int task_id);
