/* Threads launch parallel tasks of every kind at once, and use workspaces: for ThreadSanitizer and
 * AddressSanitizer. The tasks come from tests/support/c/launch_probe.c.
 *
 *     pool ROUNDS [fork] */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "threads/launch.h"
#include "abi/raised.h"
#include "threads/workspace.h"

enum { THREADS = 4, CPU = 1 };

extern int count(int, struct parallel_group_env *, void *);
extern int step(int, struct parallel_group_env *, void *);
extern int miss(int, struct parallel_group_env *, void *);
extern int fail(int, struct parallel_group_env *, void *);
extern int nest(int, struct parallel_group_env *, void *);

struct counts { /* as launch_probe.c has it */
  _Atomic int calls[64];
  _Atomic int mistakes;
};

static int rounds;

static _Noreturn void give_up(const char *what) {
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void expect_error(int status, const char *expected) {
  char *kind;
  const char *message;
  if (status != -1 || raised_take(0, &kind, &message) == 0) give_up("no error");
  if (strstr(message, expected) == NULL) give_up(message);
  raised_free(kind);
}

static void launch(dso_parallel_task task, int num_task) {
  struct counts counts = {0};
  if (parallel_launch(task, &counts, num_task) != 0 || counts.mistakes != 0) give_up("launch");
}

static void use_workspaces(void) {
  char *large = workspace_alloc(CPU, 0, 100000, 2, 32), *small = workspace_alloc(CPU, 0, 10, 0, 8);
  memset(large, 1, 100000);
  memset(small, 2, 10);
  if (workspace_free(CPU, 0, small) != 0 || workspace_free(CPU, 0, large) != 0) give_up("free");
  expect_error(workspace_free(CPU, 0, large), "is not a workspace");
}

static void *work(void *first) {
  for (int i = 0; i < rounds; i++) {
    int failing = (int)(((intptr_t)first + i) % 3);
    launch(count, i % 7);
    launch(step, 3);
    launch(nest, 2);
    expect_error(parallel_launch(miss, NULL, 3), "without reaching the barrier");
    expect_error(parallel_launch(fail, &failing, 3), "of one task");
    use_workspaces();
  }
  return NULL;
}

static void fork_once(void) {
  pid_t child = fork();
  if (child == 0) {
    launch(step, 3);
    _exit(0);
  }
  int status;
  if (waitpid(child, &status, 0) != child || status != 0) give_up("the child of a fork");
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS];
  if (argc < 2) give_up("expected ROUNDS");
  rounds = atoi(argv[1]);
  (void)setenv("TVM_NUM_THREADS", "3", 1);
  for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  /* Not before: the locks of AddressSanitizer's malloc would stay locked in the child. */
  for (int i = 0; argc > 2 && i < rounds; i++) fork_once();
  printf("%d threads, %d rounds each\n", THREADS, rounds);
  return 0;
}
