/* The thread pool, workspaces and device tables as Python's ctypes can call them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device/device_api.h"
#include "abi/object.h"
#include "threads/launch.h"
#include "abi/raised.h"
#include "threads/team.h"
#include "abi/tvm_ffi.h"
#include "threads/workspace.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int launch(dso_parallel_task task, void *data, int n) { return parallel_launch(task, data, n); }
EXPORT int barrier(int id, struct parallel_group_env *env) { return parallel_barrier(id, env); }
EXPORT int threads(void) { return team_size(); }
EXPORT void raise_error(const char *kind, const char *message) { raised_set(kind, message); }
EXPORT void *alloc(int type, int id, uint64_t nbytes) { return workspace_alloc(type, id, nbytes, 2, 32); }
EXPORT int release(int type, int id, void *data) { return workspace_free(type, id, data); }

/* The error of this thread as "kind: message", or ""; its copy in a real tvm_ffi is cleared, too. */
EXPORT const char *take_error(void) {
  static _Thread_local char text[512];
  char *kind;
  const char *message;
  dso_object *copy = tvm_ffi_take_error();
  if (copy != NULL) object_release(copy);
  text[0] = '\0';
  if (raised_take(0, &kind, &message) == 0) return text;
  strncat(text, kind, 100);
  strcat(text, ": ");
  strncat(text, message, 300);
  free(kind);
  return text;
}

/* ---- Tasks in C: Python ones take turns anyway, by the GIL */

struct counts {
  _Atomic int32_t calls[64];
  _Atomic int32_t mistakes;
};

EXPORT int count(int id, struct parallel_group_env *env, void *data) {
  struct counts *counts = data;
  if (id < 0 || id >= env->num_task) return -1;
  counts->calls[id % 64]++;
  return 0;
}

/* Rounds of: write a step, wait, read everyone's, wait. */
EXPORT int step(int id, struct parallel_group_env *env, void *data) {
  struct counts *counts = data;
  for (int round = 1; round <= 200; round++) {
    counts->calls[id] = round;
    if (parallel_barrier(id, env) != 0) return -1;
    for (int i = 0; i < env->num_task; i++) counts->mistakes += counts->calls[i] != round;
    if (parallel_barrier(id, env) != 0) return -1;
  }
  return 0;
}

/* Task 0 is over without the barrier where the others wait. */
EXPORT int miss(int id, struct parallel_group_env *env, void *data) {
  (void)data;
  return id == 0 ? 0 : parallel_barrier(id, env);
}

/* Like miss, but the result of the barrier is ignored. */
EXPORT int miss_silently(int id, struct parallel_group_env *env, void *data) {
  (void)data;
  if (id != 0) (void)parallel_barrier(id, env);
  return 0;
}

/* Fails in the task whose number is in `data`; the others wait for it. */
EXPORT int fail(int id, struct parallel_group_env *env, void *data) {
  if (id != *(int *)data) return parallel_barrier(id, env);
  usleep(1000);
  raised_set("KeyError", "of one task");
  return -1;
}

EXPORT int fail_silently(int id, struct parallel_group_env *env, void *data) {
  (void)id, (void)env, (void)data;
  return 7;
}

/* A launch inside each task: of 0 and of as many as its num_task. */
EXPORT int nest(int id, struct parallel_group_env *env, void *data) {
  struct counts *counts = data;
  struct counts own = {0};
  if (parallel_launch(count, &own, 0) != 0 || own.calls[0] != 1 || own.calls[1] != 0) return -1;
  if (parallel_launch(step, &own, env->num_task) != 0) return -1;
  counts->mistakes += own.mistakes;
  counts->calls[id]++;
  return 0;
}

/* The child of a fork in a task continues with a separate launch. */
EXPORT int launch_counts(int num_task) {
  struct counts counts = {0};
  int sum = 0;
  if (parallel_launch(count, &counts, num_task) != 0) return -1;
  for (int i = 0; i < 64; i++) sum += counts.calls[i];
  return sum;
}
