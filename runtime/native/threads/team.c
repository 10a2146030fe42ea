/* The workers of the process: created, assigned, revoked and reused. */
#define _GNU_SOURCE /* sched_getaffinity, pthread_setname_np */
#include "threads/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/futex.h"
#include "abi/heap.h"
#include "abi/pin.h"

/* Limits: threads of one launch, and workers of the process. Each launching thread gets a separate
 * team, so a launch never waits for another launch. */
enum { MAX_SIZE = 256, MAX_WORKERS = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct worker *idle; /* most recently used first: it may still be spinning */
static int num_workers;
static _Atomic int size;
static _Atomic uint32_t forks;

/* ---- How many */

/* A number from 1; of OpenMP's list for nested levels the first one. 0 if the variable is unset or
 * not a number. */
static int size_from_environment(const char *name) {
  const char *text = getenv(name);
  char *end;
  if (text == NULL) return 0;
  long number = strtol(text, &end, 10);
  if (end == text || (*end != '\0' && *end != ',') || number < 1) return 0;
  return number < MAX_SIZE ? (int)number : MAX_SIZE;
}

static int size_of_machine(void) {
  cpu_set_t set;
  long count =
      sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
  if (count < 1) return 1;
  return count < MAX_SIZE ? (int)count : MAX_SIZE;
}

int team_size(void) {
  int found = atomic_load_explicit(&size, memory_order_relaxed);
  if (found > 0) return found;
  if ((found = size_from_environment("TVM_NUM_THREADS")) == 0 &&
      (found = size_from_environment("OMP_NUM_THREADS")) == 0)
    found = size_of_machine();
  return team_set_size(found);
}

int team_set_size(int wanted) {
  int found = 0;
  return atomic_compare_exchange_strong(&size, &found, wanted) ? wanted : found;
}

/* ---- A worker */

/* Wait for a task, and take it. The task may be read only after it is taken: until then the
 * launcher may revoke it and assign another one. */
static void await_task(struct worker *self) {
  atomic_store_explicit(&self->processor, sched_getcpu(), memory_order_relaxed);
  for (;;) {
    uint32_t awake = WORKER_AWAKE, assigned = WORKER_ASSIGNED;
    if (!spin_while(&self->state, WORKER_AWAKE, SPIN_IDLE_NS) &&
        atomic_compare_exchange_strong(&self->state, &awake, WORKER_ASLEEP))
      while (atomic_load(&self->state) == WORKER_ASLEEP) futex_wait(&self->state, WORKER_ASLEEP);
    if (atomic_compare_exchange_strong(&self->state, &assigned, WORKER_AWAKE)) return;
  }
}

static void *work(void *argument) {
  struct worker *self = argument;
  uint32_t born = team_forks();
  while (team_forks() == born) { /* otherwise a task in this thread forked, and this is the child */
    await_task(self);
    fork_join_work(self->group, self->task_id);
  }
  return NULL;
}

/* If the worker would run on the launcher's processor, move it to another one. Otherwise both may
 * take turns on one processor for ever: neither is away from it for long enough that the kernel
 * would move it. */
static void keep_apart(struct worker *worker) {
  cpu_set_t set;
  int own = sched_getcpu();
  if (own < 0 || atomic_load_explicit(&worker->processor, memory_order_relaxed) != own ||
      sched_getaffinity(0, sizeof set, &set) != 0 || CPU_COUNT(&set) < 2)
    return;
  CPU_CLR((size_t)own, &set);
  (void)pthread_setaffinity_np(worker->thread, sizeof set, &set);
}

void worker_assign(struct worker *worker, struct fork_join *group, int task_id) {
  keep_apart(worker);
  worker->group = group;
  worker->task_id = task_id;
  if (atomic_exchange(&worker->state, WORKER_ASSIGNED) == WORKER_ASLEEP)
    futex_wake(&worker->state, 1);
}

int worker_revoke(struct worker *worker) {
  uint32_t assigned = WORKER_ASSIGNED;
  return atomic_compare_exchange_strong(&worker->state, &assigned, WORKER_AWAKE);
}

/* Workers block all signals, which are left to the threads of the program. */
static int start(struct worker *worker) {
  sigset_t all, before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return -1;
  int status = pthread_create(&worker->thread, NULL, work, worker);
  (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (status != 0) return -1;
  (void)pthread_setname_np(worker->thread, "dso-packer");
  (void)pthread_detach(worker->thread);
  return 0;
}

static struct worker *make_worker(void) {
  struct worker *worker = heap_new_aligned(_Alignof(struct worker), sizeof *worker);
  if (worker == NULL) return NULL;
  *worker = (struct worker){.state = WORKER_AWAKE, .processor = -1};
  if (start(worker) == 0) return worker;
  free(worker);
  return NULL;
}

/* ---- The list of workers */

static void before_fork(void) { pthread_mutex_lock(&lock); }

static void after_fork(void) { pthread_mutex_unlock(&lock); }

/* A forked child has no workers. Their memory is not freed: the child's only thread may have been a
 * worker. */
static void in_child(void) {
  (void)pthread_mutex_init(&lock, NULL);
  idle = NULL;
  num_workers = 0;
  size = 0;
  forks++;
}

static void prepare(void) {
  pin_core();
  (void)pthread_atfork(before_fork, after_fork, in_child);
}

uint32_t team_forks(void) { return forks; }

/* A new worker, or NULL if the limit is reached or the system cannot create a thread. */
static struct worker *add_worker(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare);
  pthread_mutex_lock(&lock);
  int is_full = num_workers == MAX_WORKERS;
  num_workers += !is_full;
  pthread_mutex_unlock(&lock);
  if (is_full) return NULL;
  struct worker *worker = make_worker();
  if (worker != NULL) return worker;
  pthread_mutex_lock(&lock);
  num_workers--;
  pthread_mutex_unlock(&lock);
  return NULL;
}

static struct worker *take_idle(int count, int *taken) {
  struct worker *first, **last = &first;
  pthread_mutex_lock(&lock);
  for (*taken = 0; *taken < count && idle != NULL; ++*taken) {
    *last = idle;
    last = &idle->next;
    idle = idle->next;
  }
  pthread_mutex_unlock(&lock);
  *last = NULL;
  return first;
}

struct worker *team_take(int count, int *taken) {
  struct worker *first = take_idle(count, taken), **last = &first;
  while (*last != NULL) last = &(*last)->next;
  for (; *taken < count && (*last = add_worker()) != NULL; ++*taken) last = &(*last)->next;
  return first;
}

void team_give_back(struct worker *workers) {
  if (workers == NULL) return;
  struct worker *last = workers;
  while (last->next != NULL) last = last->next;
  pthread_mutex_lock(&lock);
  last->next = idle;
  idle = workers;
  pthread_mutex_unlock(&lock);
}
