/* Loops on the threads of the loader. */
#include <stdatomic.h>
#include <stddef.h>

#include "parts.h"

struct group {
  void *sync_handle;
  int32_t num_task;
};
typedef int (*task)(int id, struct group *group, void *data);

/* A load sets this variable. It is weak, since other code of the library may define it too. */
extern int (*__TVMBackendParallelLaunch)(task task, void *data, int num_task);
__attribute__((weak, visibility("default"))) int (*__TVMBackendParallelLaunch)(task task,
                                                                               void *data,
                                                                               int num_task);

enum { WORTH_A_LAUNCH = 200000 }; /* multiplications, some microseconds */

struct loop {
  void (*item)(const void *data, int64_t index);
  const void *data;
  int64_t items;
  _Atomic int64_t next;
};

static int run(int id, struct group *group, void *data) {
  struct loop *loop = data;
  (void)id, (void)group;
  for (;;) {
    int64_t index = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed);
    if (index >= loop->items) return 0;
    loop->item(loop->data, index);
  }
}

int dso_op_parallel(void (*item)(const void *data, int64_t index), const void *data, int64_t items,
                    int64_t work) {
  if (items > 1 && work >= WORTH_A_LAUNCH && __TVMBackendParallelLaunch != NULL) {
    struct loop loop = {.item = item, .data = data, .items = items};
    return __TVMBackendParallelLaunch(run, &loop, 0);
  }
  for (int64_t index = 0; index < items; index++) item(data, index);
  return 0;
}
