/* launch PROGRAM ARGUMENT...: run a program, and print as the last line
 *     <nanoseconds> <peak KiB> <exit status>
 *
 * A program of its own, because a child begins its life with the peak memory of whoever started
 * it (getrusage(2), ru_maxrss, outlives execve): a Python process would count its own here. */
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int main(int argc, char **argv) {
  struct rusage usage;
  pid_t child;
  int status;
  if (argc < 2) {
    fputs("usage: launch PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  long long start = now();
  int error = posix_spawnp(&child, argv[1], NULL, NULL, argv + 1, environ);
  if (error != 0) {
    fprintf(stderr, "%s: %s\n", argv[1], strerror(error));
    return 2;
  }
  if (wait4(child, &status, 0, &usage) != child) {
    perror("wait4");
    return 2;
  }
  long long took = now() - start;
  /* ru_maxrss: of the child, or of the largest process it waited for. */
  printf("%lld %ld %d\n", took, usage.ru_maxrss, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 0;
}
