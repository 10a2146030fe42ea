/* Host code that uses the thread pool, workspaces and devices, as compiled TVM code does. */
#include <stdlib.h>
#include <string.h>

#include "dso_packer.h"

typedef struct {
  void *sync_handle;
  int32_t num_task;
} group;

typedef int (*task)(int task_id, group *env, void *data);

DSO_EXPORT int (*__TVMBackendParallelLaunch)(task task, void *data, int num_task);
DSO_EXPORT int (*__TVMBackendParallelBarrier)(int task_id, group *env);
DSO_EXPORT void *(*__TVMBackendAllocWorkspace)(int type, int id, uint64_t nbytes, int code, int bits);
DSO_EXPORT int (*__TVMBackendFreeWorkspace)(int type, int id, void *data);

#define FUNCTION(name)                                                                       \
  DSO_EXPORT int __tvm_ffi_##name(void *handle, const dso_any *args, int32_t num_args, dso_any *result)
#define UNUSED (void)handle, (void)num_args, (void)result

struct job {
  const float *x;
  float *y;
  int64_t n;
};

/* y[i] = x[i] + x[i + 1], by way of what all tasks wrote. */
static int add_neighbours(int task_id, group *env, void *data) {
  struct job *job = data;
  int64_t share = (job->n + env->num_task - 1) / env->num_task, first = task_id * share;
  int64_t last = first + share < job->n ? first + share : job->n;
  for (int64_t i = first; i < last; i++) job->y[i] = job->x[i];
  if (__TVMBackendParallelBarrier(task_id, env) != 0) return -1;
  float next = first < job->n && last < job->n ? job->y[last] : 0;
  if (__TVMBackendParallelBarrier(task_id, env) != 0) return -1;
  for (int64_t i = first; i < last; i++) job->y[i] += i + 1 < last ? job->y[i + 1] : next;
  return 0;
}

FUNCTION(neighbours) {
  UNUSED;
  const DLTensor *x = args[0].v_ptr, *y = args[1].v_ptr;
  struct job job = {x->data, y->data, x->shape[0]};
  return __TVMBackendParallelLaunch(add_neighbours, &job, (int)args[2].v_int64);
}

static int call_back(int task_id, group *env, void *data) {
  dso_any arg = dso_int(task_id);
  (void)env;
  return dso_call_function(data, NULL, &arg, 1);
}

/* call(task_id) in each task. */
FUNCTION(each) {
  UNUSED;
  return __TVMBackendParallelLaunch(call_back, args[0].v_ptr, (int)args[1].v_int64);
}

/* Reverse an array by way of a workspace. */
FUNCTION(reverse) {
  UNUSED;
  DLTensor *x = args[0].v_ptr;
  size_t n = (size_t)x->shape[0];
  float *from = x->data, *to = __TVMBackendAllocWorkspace(1, 0, n * sizeof *to, 2, 32);
  if (to == NULL) return -1;
  for (size_t i = 0; i < n; i++) to[n - 1 - i] = from[i];
  memcpy(from, to, n * sizeof *to);
  return __TVMBackendFreeWorkspace(1, 0, to);
}

FUNCTION(workspace) {
  UNUSED;
  int type = (int)args[0].v_int64, id = (int)args[1].v_int64;
  void *data = __TVMBackendAllocWorkspace(type, id, (uint64_t)args[2].v_int64, 2, 32);
  return data != NULL ? __TVMBackendFreeWorkspace(type, id, data) : -1;
}

FUNCTION(set_device) {
  UNUSED;
  return dso_call("__tvm_set_device", NULL, args[0], args[1]);
}
