/* The list of threads and their current calls. */
#define _GNU_SOURCE /* syscall */
#include "library/in_call.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/heap.h"
#include "abi/pin.h"

/* linux/membarrier.h, which older systems lack. */
enum { PRIVATE_EXPEDITED = 1 << 3, REGISTER_PRIVATE_EXPEDITED = 1 << 4 };

_Thread_local struct in_call *in_call_here;
int in_call_needs_fence;

static struct in_call *entries;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread ended, perhaps inside a call that never returned. A later call from the destructor of
 * another key makes a new entry. */
static void end(void *here) {
  struct in_call *entry = here;
  in_call_here = NULL;
  __atomic_store_n(&entry->depth, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&entry->is_taken, 0, __ATOMIC_RELEASE);
}

static void prepare(void) {
  pin_core(); /* threads may end after dlclose */
  in_call_needs_fence = syscall(SYS_membarrier, REGISTER_PRIVATE_EXPEDITED, 0) != 0;
  (void)pthread_key_create(&key, end);
}

static struct in_call *take_over(void) {
  struct in_call *entry = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
  for (int is_taken = 0; entry != NULL; entry = entry->next, is_taken = 0)
    if (__atomic_compare_exchange_n(&entry->is_taken, &is_taken, 1, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return entry;
  return NULL;
}

static struct in_call *make_entry(void) {
  struct in_call *entry = heap_new_zeroed(1, sizeof *entry);
  if (entry == NULL) return NULL;
  entry->is_taken = 1;
  entry->next = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
  while (!__atomic_compare_exchange_n(&entries, &entry->next, entry, 0, __ATOMIC_RELEASE,
                                      __ATOMIC_ACQUIRE))
    continue;
  return entry;
}

struct in_call *in_call_begin(void) {
  pthread_once(&once, prepare);
  struct in_call *entry = take_over();
  if (entry == NULL) entry = make_entry();
  if (entry == NULL) return NULL;
  (void)pthread_setspecific(key, entry);
  return in_call_here = entry;
}

void in_call_barrier(void) {
  pthread_once(&once, prepare);
  if (in_call_needs_fence || syscall(SYS_membarrier, PRIVATE_EXPEDITED, 0) != 0)
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static int is_calling(const struct in_call *entry, const void *object) {
  uint32_t depth = __atomic_load_n(&entry->depth, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < depth && i < IN_CALL_DEPTH; i++)
    if (__atomic_load_n(&entry->objects[i], __ATOMIC_RELAXED) == object) return 1;
  return depth > IN_CALL_DEPTH;
}

int in_call_any(const void *object) {
  const struct in_call *entry = __atomic_load_n(&entries, __ATOMIC_ACQUIRE);
  for (; entry != NULL; entry = entry->next)
    if (is_calling(entry, object)) return 1;
  return 0;
}
