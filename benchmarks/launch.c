/* launch PROGRAM ARGUMENT...: run a program, and print as the last line
 *     <nanoseconds> <peak KiB> <exit status>
 *
 * The peak is that of the whole process tree: the sum of the resident memory of all processes,
 * sampled every few milliseconds, or the own peak of the largest process if that is more.
 *
 * This is a separate program, because a child begins with the peak memory of its parent
 * (getrusage(2): ru_maxrss survives execve). A child of Python would count Python's memory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

enum { LOOK_EVERY = 4000000 /* ns */ };

static long resident(int process);

/* The resident KiB of all processes that one thread of a process started. */
static long started_by(int process, const char *thread) {
  char path[64];
  long total = 0;
  int child;
  snprintf(path, sizeof path, "/proc/%d/task/%.20s/children", process, thread);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  while (fscanf(file, "%d", &child) == 1) total += resident(child);
  fclose(file);
  return total;
}

/* The resident KiB of a process and of all its descendants; 0 for a process that has ended. */
static long resident(int process) {
  char path[64];
  long pages = 0, total = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", process);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%*d %ld", &pages) == 1) total = pages * (sysconf(_SC_PAGESIZE) / 1024);
  fclose(file);
  snprintf(path, sizeof path, "/proc/%d/task", process);
  DIR *threads = opendir(path);
  if (threads == NULL) return total;
  for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
    if (entry->d_name[0] != '.') total += started_by(process, entry->d_name);
  closedir(threads);
  return total;
}

int main(int argc, char **argv) {
  struct rusage usage;
  pid_t child;
  int status;
  if (argc < 2) {
    fputs("usage: launch PROGRAM ARGUMENT...\n", stderr);
    return 2;
  }
  /* Blocked here, so that sigtimedwait gets it; the child gets the previous mask. */
  sigset_t child_ends, before;
  sigemptyset(&child_ends);
  sigaddset(&child_ends, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_ends, &before);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &before);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  long long start = now();
  int error = posix_spawnp(&child, argv[1], NULL, &attributes, argv + 1, environ);
  if (error != 0) {
    fprintf(stderr, "%s: %s\n", argv[1], strerror(error));
    return 2;
  }
  long peak = 0;
  pid_t ended;
  while ((ended = wait4(child, &status, WNOHANG, &usage)) == 0) {
    struct timespec pause = {.tv_nsec = LOOK_EVERY};
    long found = resident(child);
    if (found > peak) peak = found;
    sigtimedwait(&child_ends, NULL, &pause); /* at once when it ends */
  }
  long long took = now() - start;
  if (ended != child) {
    perror("wait4");
    return 2;
  }
  /* ru_maxrss: of the child, or of the largest process that it waited for. */
  if (usage.ru_maxrss > peak) peak = usage.ru_maxrss;
  printf("%lld %ld %d\n", took, peak, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 0;
}
